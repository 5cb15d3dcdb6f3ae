package pulls

import (
	"maps"
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/report"
)

var start = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func every(seconds, until int) (beats []time.Time) {
	for s := seconds; s <= until; s += seconds {
		beats = append(beats, at(s))
	}
	return beats
}

// TestMeasure: a column's metrics are of all that crossed, of the last node, and only of nodes that got the image.
func TestMeasure(t *testing.T) {
	o := outcome{
		began: at(0), ended: at(100), nodes: 2, crossed: 103, pulled: 100, lease: 40 * time.Second,
		got:   map[string]time.Time{"a": at(30), "b": at(50)},
		beats: map[string][]time.Time{"a": every(10, 100), "b": every(10, 100)},
	}
	check := func(name string, o outcome, stock bool, want report.Values) {
		t.Helper()
		m := report.Values{}
		o.measure(m, stock)
		if !maps.Equal(m, want) {
			t.Errorf("%s: %v, want %v", name, m, want)
		}
	}
	check("all is well", o, false, report.Values{
		"image_bytes_ratio": 1.03, "image_nodes": 2, "image_seconds": 50, "late_heartbeats": 0,
	})
	check("stock", o, true, report.Values{
		"stock_image_bytes_ratio": 1.03, "stock_image_nodes": 2, "stock_image_seconds": 50,
	})
	o.written = []mark{{5, at(10)}, {9, at(45)}}
	o.seen = map[string][]mark{"a": {{3, at(1)}, {5, at(12)}, {9, at(46)}}, "b": {{5, at(11)}, {11, at(49)}}}
	check("changes", o, true, report.Values{
		"stock_image_bytes_ratio": 1.03, "stock_image_nodes": 2, "stock_image_seconds": 50, "stock_cache_wait_seconds": 4,
	})
	o.seen["a"] = o.seen["a"][:2]
	check("one that a node never saw", o, true, report.Values{
		"stock_image_bytes_ratio": 1.03, "stock_image_nodes": 2, "stock_image_seconds": 50, "stock_cache_wait_seconds": 55,
	})
	o.cuts = []span{{from: at(44), to: at(98)}}
	check("and a cut", o, true, report.Values{
		"stock_image_bytes_ratio": 1.03, "stock_image_nodes": 2, "stock_image_seconds": 50, "stock_cache_wait_seconds": 2,
		"stock_image_nodes_offline": 1,
	})
	o.written = nil
	o.cuts = []span{{from: at(40), to: at(60)}}
	check("one offline", o, false, report.Values{
		"image_bytes_ratio": 1.03, "image_nodes": 2, "image_seconds": 50, "late_heartbeats": 0, "image_nodes_offline": 1,
	})
	delete(o.got, "b")
	check("one has none", o, false, report.Values{
		"image_bytes_ratio": 1.03, "image_nodes": 1, "late_heartbeats": 0, "image_nodes_offline": 0,
	})
	o.beats["b"] = every(90, 100)
	check("one is late", o, false, report.Values{
		"image_bytes_ratio": 1.03, "image_nodes": 1, "late_heartbeats": 1, "image_nodes_offline": 0,
	})
}

// TestLateBeats: a gap counts by itself, at the beginning and the end as well, and without the time of cuts.
func TestLateBeats(t *testing.T) {
	for name, c := range map[string]struct {
		beats []time.Time
		away  []span
		want  int
	}{
		"in time":                     {every(40, 200), nil, 0},
		"none":                        {nil, nil, 1},
		"late in the beginning":       {[]time.Time{at(41), at(80), at(120), at(160), at(200)}, nil, 1},
		"late in the end":             {every(40, 120), nil, 1},
		"late twice":                  {[]time.Time{at(50), at(90), at(130), at(199)}, nil, 2},
		"before and after the column": {append([]time.Time{at(-5)}, append(every(40, 200), at(300))...), nil, 0},
		"cut off":                     {[]time.Time{at(40), at(150), at(180)}, []span{{at(45), at(120)}}, 0},
		"cut off, and late after it":  {[]time.Time{at(40), at(165), at(200)}, []span{{at(45), at(120)}}, 1},
		"cut off until the end":       {every(40, 80), []span{{from: at(90)}}, 0},
	} {
		if n := lateBeats(c.beats, at(0), at(200), 40*time.Second, c.away); n != c.want {
			t.Errorf("%s: %d are late, want %d", name, n, c.want)
		}
	}
}

// TestBackoff: a kubelet asks again after ten seconds, then after twice as long each time, up to five minutes.
func TestBackoff(t *testing.T) {
	var got []time.Duration
	var d time.Duration
	for range 7 {
		d = backoff(d)
		got = append(got, d/time.Second)
	}
	for i, want := range []time.Duration{10, 20, 40, 80, 160, 300, 300} {
		if got[i] != want {
			t.Fatalf("it waits %d s, want 10, 20, 40, 80, 160, 300, 300", got)
		}
	}
}
