package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/weir-edge/weir/sim/report"
)

// attack is a string that would run, load or break out of something if it were not escaped.
const attack = "x\"'><script>alert(1)</script><img src=http://evil.example/a onerror=alert(1)>`|[a](javascript:b)\n\n" +
	"# h\x00\xff\u2028</svg></style>${1}"

// hostile is a result whose every string is an attack and whose every number is none or the largest.
func hostile() report.Result {
	return report.Result{
		Outcome: report.Outcome{
			Scenario: attack, Seed: math.MinInt64, Passed: true,
			Expectations: []report.Expectation{{Name: attack, Got: attack, Want: attack}},
			Metrics: report.Values{
				attack: math.NaN(), "pool_bytes_ratio": math.Inf(1), "watch_violations": math.Inf(-1), "failovers": 1e300,
			},
		},
		Description: attack, Error: attack, Repeat: attack, Runtime: attack, Revision: attack,
		Seconds: math.NaN(), UplinkBitsPerSecond: math.Inf(1),
		Versions: map[string]string{attack: attack},
		Machine:  report.Machine{OS: attack, Kernel: attack, CPU: attack, CPUs: -1, MemoryBytes: math.MinInt64},
		Topology: []report.Fact{
			{Name: attack, Value: math.NaN()}, {Name: attack, Value: -1e300, Unit: report.Unit(attack)},
		},
		Bytes: report.ByteTable{
			{Way: attack, Class: attack, Direction: attack, Phase: attack, Node: attack, Bytes: math.MaxInt64},
			{Way: "weir", Bytes: math.MinInt64},
		},
		Series: []report.Series{
			{Way: attack, Direction: attack, Class: attack, Bytes: []int64{math.MaxInt64, math.MinInt64, 0}},
			{Way: "weir", Direction: "down"},
		},
		Readiness: []report.Readiness{
			{Way: attack, Node: attack, Resource: attack, Synced: true, Seconds: math.Inf(1)},
			{Way: attack, Node: attack, Resource: attack, Synced: true, Seconds: -5},
		},
		Clients: []report.Client{
			{
				Way: attack, Node: attack, Name: attack, Resource: attack, Adds: math.MaxInt64, Updates: math.MaxInt64, Deletes: -1,
				Relists: 1, Violations: math.MaxInt64,
			},
		},
		Memory: []report.Memory{{Process: attack, Node: attack, When: attack, RSSAnonBytes: -1, RSSBytes: math.MaxInt64}},
		Violations: []report.Violation{
			{Way: attack, Node: attack, Client: attack, Rule: attack, Detail: attack, Seconds: math.NaN()},
		},
		Faults: []report.Fault{
			{
				Name: attack, Target: attack, At: math.NaN(), Lasted: math.Inf(1), Leader: true, Reached: math.Inf(1), Detect: -1,
				CloudBytes: math.MinInt64, Connections: -1,
			},
		},
		Marks: []report.Mark{
			{Way: attack, Seconds: math.NaN(), Label: attack}, {Way: attack, Seconds: -1, Label: attack, Fault: true},
		},
	}
}

// huge is a result of many nodes over hours.
func huge() report.Result {
	r := sample(60)
	for i := range r.Series {
		r.Series[i].Bytes = append(r.Series[i].Bytes, make([]int64, 40_000)...)
	}
	for i := range 5000 {
		r.Violations = append(r.Violations, report.Violation{
			Way: "weir", Client: "c", Rule: "ordered", Detail: fmt.Sprint(i),
		})
		r.Marks = append(r.Marks, report.Mark{Way: "weir", Seconds: float64(i), Label: fmt.Sprint("mark ", i)})
	}
	for i := range r.Clients {
		r.Clients[i].Updates = int64(i)
	}
	return r
}

// results are what every format has to take.
func results() map[string]report.Result {
	return map[string]report.Result{
		"passed": sample(5), "failed": failedSample(), "20 nodes": sample(20), "huge": huge(), "empty": {},
		"hostile": hostile(),
		"no points": {
			Outcome: report.Outcome{Scenario: "x"}, Series: []report.Series{
				{Way: "weir", Direction: "down"}, {Way: "stock", Direction: "up", Bytes: []int64{}},
			},
		},
		"one point": {
			Outcome: report.Outcome{Scenario: "x"}, Series: []report.Series{{Way: "weir", Direction: "down", Bytes: []int64{1}}},
		},
		"zeros": {
			Outcome: report.Outcome{Scenario: "x"}, Series: []report.Series{
				{Way: "weir", Direction: "down", Bytes: []int64{0, 0, 0}},
			}, UplinkBitsPerSecond: 1,
		},
	}
}

func TestFormatsTakeAnything(t *testing.T) {
	for name, r := range results() {
		t.Run(name, func(t *testing.T) {
			page, err := report.Page(r)
			if err != nil {
				t.Fatal(err)
			}
			checkHTML(t, page)
			if limit := 2 << 20; len(page) > limit {
				t.Errorf("page has %d bytes, more than %d", len(page), limit)
			}
			plot, err := report.Plot(r)
			if err != nil {
				t.Fatal(err)
			}
			checkXML(t, plot)
			checkMarkdown(t, report.Summary(r))
			compared, err := report.Compare(r, r)
			if err != nil {
				t.Fatal(err)
			}
			checkMarkdown(t, compared)
			index, err := report.Index([]report.Entry{{Dir: attack, Result: r}, {Dir: "javascript:alert(1)", Result: r}})
			if err != nil {
				t.Fatal(err)
			}
			checkHTML(t, index)

			dir := t.TempDir()
			if err := report.Write(dir, r); err != nil {
				t.Fatal(err)
			}
			again, err := report.Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := report.Summary(again), report.Summary(r); name != "hostile" && got != want {
				t.Errorf("summary of the loaded result differs:\n%s", cmp.Diff(want, got))
			}
		})
	}
}

// checkHTML fails on elements that are not closed in order, on scripts and handlers, and on whatever would
// load something.
func checkHTML(t *testing.T, page []byte) {
	t.Helper()
	if _, err := html.Parse(bytes.NewReader(page)); err != nil {
		t.Fatal(err)
	}
	void := map[string]bool{"meta": true, "br": true, "hr": true, "img": true, "link": true, "input": true}
	allowed := map[string]bool{
		"html": true, "head": true, "meta": true, "title": true, "style": true, "body": true, "header": true, "main": true,
		"section": true,
		"footer":  true, "h1": true, "h2": true, "p": true, "span": true, "strong": true, "a": true, "dl": true, "dt": true,
		"dd": true, "div": true,
		"figure": true, "figcaption": true, "details": true, "summary": true, "table": true, "caption": true, "thead": true,
		"tbody": true, "tr": true,
		"th": true, "td": true, "code": true, "pre": true, "ul": true, "li": true,
		"svg": true, "desc": true, "line": true, "path": true, "rect": true, "circle": true, "text": true,
	}
	ids := map[string]bool{}
	var open []string
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		kind := z.Next()
		token := z.Token()
		switch kind {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) {
				t.Fatal(z.Err())
			}
			if len(open) > 0 {
				t.Errorf("not closed: %v", open)
			}
			return
		case html.StartTagToken, html.SelfClosingTagToken:
			if !allowed[token.Data] {
				t.Fatalf("element <%s> is none of ours: %s", token.Data, token)
			}
			for _, a := range token.Attr {
				switch {
				case strings.HasPrefix(a.Key, "on"), a.Key == "src", a.Key == "srcset", a.Key == "style",
					a.Key == "href" && strings.Contains(strings.Split(a.Val, "/")[0], ":") && !strings.HasPrefix(a.Val, "./"),
					a.Key == "href" && strings.HasPrefix(a.Val, "//"):
					t.Errorf("attribute that runs or loads something: %s", token)
				case a.Key == "id" && ids[a.Val]:
					t.Errorf("id %q twice", a.Val)
				case a.Key == "id":
					ids[a.Val] = true
				}
			}
			if kind == html.StartTagToken && !void[token.Data] {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("</%s> closes %v", token.Data, open)
			}
			open = open[:len(open)-1]
		case html.TextToken:
			if n := len(open); n > 0 && open[n-1] == "style" &&
				(strings.Contains(token.Data, "url(") || strings.Contains(token.Data, "@import")) {
				t.Error("the style sheet loads something")
			}
			if strings.Contains(token.Data, "ZgotmplZ") {
				t.Errorf("the template engine refused a value: %q", token.Data)
			}
		}
	}
}

func checkXML(t *testing.T, data []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok &&
			(e.Name.Local == "script" || e.Name.Local == "image" || e.Name.Local == "foreignObject") {
			t.Fatalf("element <%s> in a plot", e.Name.Local)
		}
	}
}

// checkMarkdown fails on rows that have not as many fields as their table, and on raw HTML and links outside code.
func checkMarkdown(t *testing.T, md string) {
	t.Helper()
	fields, fence := 0, ""
	for n, line := range strings.Split(md, "\n") {
		if f := line[:len(line)-len(strings.TrimLeft(line, "`"))]; len(f) >= 3 {
			if fence == "" {
				fence = f
			} else if f == fence {
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue
		}
		bare := strings.NewReplacer(`\\`, "", `\|`, "", `\<`, "", `\[`, "", "\\`", "").Replace(line)
		if got := strings.Count(bare, "|"); strings.HasPrefix(line, "| ") {
			if fields == 0 {
				fields = got
			}
			if got != fields {
				t.Errorf("line %d has %d bars, its table %d: %s", n+1, got, fields, line)
			}
		} else {
			fields = 0
		}
		outside := ""
		for i, part := range strings.Split(bare, "`") {
			if i%2 == 0 {
				outside += part
			}
		}
		if strings.Contains(outside, "<s") || strings.Contains(outside, "<i") ||
			(strings.Contains(outside, "[") && !strings.HasPrefix(line, "![")) {
			t.Errorf("line %d is not escaped: %s", n+1, line)
		}
	}
	if fence != "" {
		t.Errorf("a block of code is not closed")
	}
}
