package svg_test

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/report/svg"
)

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		name  string
		max   float64
		count int
		time  bool
		want  []float64
	}{
		{name: "bytes", max: 61.2, count: 4, want: []float64{0, 20, 40, 60}},
		{name: "on the edge", max: 10, count: 5, want: []float64{0, 2, 4, 6, 8, 10}},
		{name: "fractions", max: 0.3, count: 3, want: []float64{0, 0.1, 0.2, 0.30000000000000004}},
		{name: "nothing", max: 0, count: 2, want: []float64{0, 0.5, 1}},
		{name: "not a number", max: math.NaN(), count: 2, want: []float64{0, 0.5, 1}},
		{name: "infinite", max: math.Inf(1), count: 2, want: []float64{0, 0.5, 1}},
		{name: "seconds", max: 95, count: 6, time: true, want: []float64{0, 30, 60, 90}},
		{name: "minutes", max: 400, count: 4, time: true, want: []float64{0, 120, 240, 360}},
		{name: "hours", max: 20000, count: 3, time: true, want: []float64{0, 7200, 14400}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := svg.Scale{Max: tc.max}
			got := s.Ticks(tc.count)
			if tc.time {
				got = s.TimeTicks(tc.count)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ticks (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScaleStaysOnTheCanvas(t *testing.T) {
	s := svg.Scale{Max: 10, From: 100, To: 0}
	for v, want := range map[float64]float64{0: 100, 5: 50, 10: 0, 99: 0, -3: 100, math.Inf(1): 0} {
		if got := s.At(v); got != want {
			t.Errorf("At(%v) = %v, want %v", v, got, want)
		}
	}
	if got := s.At(math.NaN()); got != 100 {
		t.Errorf("At(NaN) = %v, want 100", got)
	}
}

func TestDrawingsAreXML(t *testing.T) {
	const bad = "</title><script>alert(1)</script>\"'&\x00\x1b\xff\ufffe\n"
	c := svg.New(bad, math.Inf(1), math.NaN(), bad, bad)
	at := svg.Point{X: math.NaN(), Y: math.Inf(-1)}
	c.Line(bad, at, at)
	c.Rect(bad, bad, at, -1, math.NaN())
	c.Circle(bad, bad, at, math.NaN())
	c.Polyline(bad, nil)
	c.Polyline(bad, []svg.Point{at, at})
	c.Area(bad, nil, 0)
	c.Area(bad, []svg.Point{at, {X: 1e300, Y: 2}}, math.NaN())
	c.Text(bad, svg.Middle, at, bad)
	c.TextTip(bad, svg.End, at, strings.Repeat(bad, 9), 10)
	for name, drawing := range map[string]string{
		"inline": c.Inline(), "standalone": c.Standalone("a>b{}</style><script>"),
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(drawing, "NaN") || strings.Contains(drawing, "Inf") {
				t.Error("a number that is none was drawn")
			}
			dec := xml.NewDecoder(strings.NewReader(drawing))
			for {
				token, err := dec.Token()
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatalf("not XML: %v\n%s", err, drawing)
				}
				if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
					t.Fatalf("a script came in:\n%s", drawing)
				}
			}
		})
	}
}

func TestShorten(t *testing.T) {
	for _, tc := range []struct {
		in    string
		limit int
		want  string
	}{
		{"edge-1", 10, "edge-1"},
		{"a-very-long-node-name-1", 9, "a-ve…me-1"},
		{"ééééééé", 5, "éé…éé"},
		{"abcdef", 2, "abcdef"},
	} {
		if got := svg.Shorten(tc.in, tc.limit); got != tc.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", tc.in, tc.limit, got, tc.want)
		}
	}
}
