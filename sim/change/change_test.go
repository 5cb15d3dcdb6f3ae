package change

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/timeline"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: go test ./sim/change -update writes it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, diff)
	}
}

// TestRank: what is worse comes first, then what matters more, then the larger change.
func TestRank(t *testing.T) {
	line := func(v Verdict, k Kind, name string, after float64) Line {
		return Line{Figure: Figure{Name: name, Kind: k}, Verdict: v, Before: 1, After: after}
	}
	var names []string
	for _, l := range Rank([]Line{
		line(Same, Count, "same", 1), line(Unjudged, Count, "unjudged", 9), line(New, Count, "new", 9),
		line(Better, Count, "better", 0), line(Gone, Count, "gone", 0), line(Worse, Time, "time", 9),
		line(Worse, Bytes, "bytes", 2), line(Worse, Bytes, "more-bytes", 3), line(Worse, Count, "count", 2),
	}) {
		names = append(names, l.Name)
	}
	if got, want := strings.Join(names, " "), "count more-bytes bytes time gone better new unjudged same"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// times are rounds of samples around a value, of a seed.
func around(seed uint64, n int, centre, spread float64) (out [][]float64) {
	random := rand.New(rand.NewPCG(seed, 1))
	for range LeastRounds {
		var samples []float64
		for range n {
			samples = append(samples, centre*(1+spread*(random.Float64()-0.5)))
		}
		out = append(out, samples)
	}
	return out
}

// swing makes all sides slower and faster together, as a machine that others use does.
func swing(sides ...[][]float64) {
	random := rand.New(rand.NewPCG(7, 7))
	for i := range sides[0] {
		for k := range sides[0][i] {
			by := 1 + 4*random.Float64()
			for _, s := range sides {
				s[i][k] *= by
			}
		}
	}
}

func same(v float64, n int) [][]float64 {
	var samples []float64
	for range n {
		samples = append(samples, v)
	}
	return [][]float64{samples}
}

func TestJudge(t *testing.T) {
	busy := Figure{Kind: Time, Base: around(1, 12, 1, 0.1), Again: around(2, 12, 1, 0.1), Head: around(3, 12, 1.2, 0.1)}
	swing(busy.Base, busy.Again, busy.Head)
	noisy := [][]float64{{100, 140, 90, 120, 100, 100, 110, 100, 100, 100}}
	for _, test := range []struct {
		name  string
		f     Figure
		known float64
		want  Verdict
	}{
		{"one list more", Figure{Kind: Count, Base: same(0, 5), Again: same(0, 5), Head: same(1, 5)}, 0, Worse},
		{"one list less", Figure{Kind: Count, Base: same(1, 5), Again: same(1, 5), Head: same(0, 5)}, 0, Better},
		{"one outlier among counts", Figure{Kind: Count, Base: same(0, 5), Head: [][]float64{{0, 0, 3, 0, 0}}}, 0, Same},
		{"counts that vary at the base", Figure{Kind: Count, Base: [][]float64{{3, 5, 4}}, Head: same(5, 3)}, 0, Same},
		{"counts beyond what varies", Figure{Kind: Count, Base: [][]float64{{3, 5, 4}}, Head: same(6, 3)}, 0, Worse},
		{"one list more, where some moments have one and some two", Figure{
			Kind: Count, Base: [][]float64{{2, 1, 2, 1, 1}}, Again: [][]float64{{2, 1, 1, 1, 1}},
			Head: [][]float64{{3, 2, 3, 2, 2}},
		}, 0, Worse},
		{"one list more in three of five moments", Figure{
			Kind: Count, Base: [][]float64{{2, 1, 2, 1, 1}}, Again: [][]float64{{2, 1, 1, 1, 1}},
			Head: [][]float64{{3, 2, 3, 1, 1}},
		}, 0, Same},
		{
			"counts by chance", Figure{
				Kind: Count, Base: [][]float64{{0, 0, 1, 1, 1}}, Again: [][]float64{{0, 0, 0, 1, 1}},
				Head: [][]float64{{1, 0, 0, 0, 1}},
			}, 0, Same,
		},
		{
			"a heartbeat of 10 bytes more", Figure{Kind: Bytes, Base: same(812, 40), Again: same(812, 40), Head: same(822, 40)},
			0, Worse,
		},
		{
			"a heartbeat of 1 byte more", Figure{Kind: Bytes, Base: same(812, 40), Again: same(812, 40), Head: same(813, 40)}, 0,
			Worse,
		},
		{"bytes within what was learned", Figure{Kind: Bytes, Base: same(1000, 40), Head: same(1009, 40)}, 0.01, Same},
		{"bytes beyond what was learned", Figure{Kind: Bytes, Base: same(1000, 40), Head: same(1011, 40)}, 0.01, Worse},
		{"bytes of few runs, within a per cent", Figure{Kind: Bytes, Base: same(1000, 3), Head: same(1009, 3)}, 0, Same},
		{"bytes of few runs, beyond it", Figure{Kind: Bytes, Base: same(1000, 3), Head: same(1011, 3)}, 0, Worse},
		{"bytes that vary", Figure{Kind: Bytes, Base: noisy, Again: noisy, Head: same(119, 10)}, 0, Same},
		{"memory within five per cent", Figure{Kind: Memory, Base: same(100, 3), Head: same(104, 3)}, 0, Same},
		{"memory beyond it", Figure{Kind: Memory, Base: same(100, 3), Head: same(106, 3)}, 0, Worse},
		{
			"a get 20 % slower", Figure{
				Kind: Time, Base: around(1, 12, 1, 0.1), Again: around(2, 12, 1, 0.1), Head: around(3, 12, 1.2, 0.1),
			}, 0, Worse,
		},
		{
			"a get 20 % slower, noise of 4 %", Figure{
				Kind: Time, Base: around(1, 12, 1, 0.2), Again: around(2, 12, 1.04, 0.2), Head: around(3, 12, 1.2, 0.2),
			}, 0, Worse,
		},
		{
			"a get 20 % slower on a machine that differs by 15 % from itself",
			Figure{Kind: Time, Base: around(1, 12, 1, 0.1), Again: around(2, 12, 1.15, 0.1), Head: around(3, 12, 1.2, 0.1)}, 0,
			Same,
		},
		{"a get 20 % slower while the machine is up to five times slower", busy, 0, Worse},
		{
			"a get 20 % faster", Figure{
				Kind: Time, Base: around(1, 12, 1, 0.1), Again: around(2, 12, 1, 0.1), Head: around(3, 12, 0.8, 0.1),
			}, 0, Better,
		},
		{
			"the same times", Figure{
				Kind: Time, Base: around(1, 12, 1, 0.1), Again: around(2, 12, 1, 0.1), Head: around(3, 12, 1, 0.1),
			}, 0, Same,
		},
		{
			"two rounds of three", Figure{
				Kind: Time, Base: around(1, 12, 1, 0.1), Head: append(around(3, 12, 1.3, 0.1)[:2], around(4, 12, 1, 0.1)[0]),
			}, 0, Same,
		},
		{"nine samples", Figure{Kind: Time, Base: around(1, 9, 1, 0.1), Head: around(3, 9, 2, 0.1)}, 0, Unjudged},
		{"two rounds", Figure{Kind: Time, Base: around(1, 12, 1, 0.1)[:2], Head: around(3, 12, 2, 0.1)[:2]}, 0, Unjudged},
		{"no round", Figure{Kind: Time, Base: [][]float64{{}}, Head: [][]float64{{1}}}, 0, New},
		{"new", Figure{Kind: Count, Head: same(1, 1)}, 0, New},
		{"gone", Figure{Kind: Count, Base: same(1, 1)}, 0, Gone},
		{"nothing", Figure{Kind: Count}, 0, Unjudged},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.f.Subject, test.f.Name = "card", test.name
			l := Judge([]Figure{test.f}, Bands{test.f.Key(): test.known})[0]
			if l.Verdict != test.want {
				t.Errorf("got %s (%s), want %s", l.Verdict, l.Why, test.want)
			}
		})
	}
}

// TestNoiseIsNoChange: samples of one distribution are never called worse, whatever the seed.
func TestNoiseIsNoChange(t *testing.T) {
	for seed := range uint64(300) {
		f := Figure{
			Kind: Time, Base: around(3*seed, 12, 1, 0.3), Again: around(3*seed+1, 12, 1, 0.3),
			Head: around(3*seed+2, 12, 1, 0.3),
		}
		if l := f.judge(0); l.Verdict != Same {
			t.Errorf("seed %d: %s: %s", seed, l.Verdict, l.Why)
		}
	}
}

// sample is a report with everything in it.
func sample() *Report {
	track := func(bad bool) *Track {
		t := &Track{Title: "leader-kill", Seconds: 40, Marks: []Mark{{At: 10, Label: "kill hub/edge-1"}}, Lanes: []Lane{
			{Name: "link, class pool", Kind: LaneLink, Unit: "B", Amounts: []float64{0, 5000, 120000, 300, 0, 900}},
			{
				Name: "edge-1 is", Kind: LaneRole, Spans: []Span{
					{0, 10, "leader", ""}, {10, 12, "", "killed"}, {12, 40, "follower", ""},
				},
			},
			{Name: "edge-2 is", Kind: LaneRole, Spans: []Span{{0, 11, "follower", ""}, {11, 40, "leader", ""}}},
			{Name: "edge-2 reads", Kind: LaneCache, Spans: []Span{{0, 11, "coordinator", ""}, {11, 40, "cloud", ""}}},
			{Name: "edge-1 streams", Kind: LaneStreams, Spans: []Span{{0, 40, "follower", ""}}},
		}}
		if bad {
			t.Lanes[4].Moments = []Mark{
				{At: 11.2, Label: "kube-proxy: ordered: version 5 after 7", Bad: true},
				{At: 12, Label: "kube-proxy: ordered: again", Bad: true},
			}
		}
		return t
	}
	r := &Report{
		Base: Side{
			Revision: "cb0e56d", Subject: "hub: before",
		}, Head: Side{Revision: "1a2b3c4", Subject: "hub: <b>after</b> | it"}, Command: "make report BASE=cb0e56d QUICK=1",
		Quick: true,
		Began: time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC), Seconds: 512, Machine: "linux/amd64, 2 processors, go1.26.8",
		Figures: []Figure{
			{
				Subject: "get", Name: "time of a get answered by a relay", Unit: "s", Kind: Time, Base: around(1, 12, 0.0005, 0.1),
				Again: around(2, 12, 0.0005, 0.1), Head: around(3, 12, 0.0006, 0.1), Repeat: "make report ONLY=card",
			},
			{
				Subject: "heartbeat", Name: "bytes of one renewal", Unit: "B", Kind: Bytes, Base: same(812, 40),
				Again: same(812, 40), Head: same(822, 40), Repeat: "make report ONLY=card",
			},
			{
				Subject: "leader change", Name: "lists of hubs at kube-apiserver", Kind: Count, Base: same(0, 5), Again: same(0, 5),
				Head: same(1, 5), Repeat: "make report ONLY=card",
			},
			{
				Subject: "memory", Name: "RssAnon of a hub", Unit: "B", Kind: Memory, Base: same(18e6, 3), Again: same(18e6, 3),
				Head: same(16.5e6, 3),
			},
			{
				Subject: "pool-cache", Name: "total_bytes_ratio", Unit: "ratio", Kind: Bytes, Base: same(1.028, 1),
				Head: same(1.028, 1),
			},
			{
				Subject: "start", Name: "until all caches are ready", Unit: "s", Kind: Time, Base: same(3.1, 3), Head: same(2.9, 3),
			},
		},
		Runs: []Run{
			{
				Scenario: "leader-kill", Side: SideBase, Seed: 20261101, File: "scenarios/leader-kill.yaml",
				Repeat: "make scenario NAME=leader-kill", Seconds: 61, Passed: true, Track: track(false),
			},
			{
				Scenario: "leader-kill", Side: SideHead, Seed: 20261101, File: "scenarios/leader-kill.yaml",
				Repeat: "make scenario NAME=leader-kill", Seconds: 62, Violations: 2,
				Failed: []string{
					"watch_violations: got 2, want = 0",
				}, First: &Broken{11.2, "kube-proxy on edge-1", "ordered", "version 5 after 7"}, Track: track(true),
			},
			{
				Scenario: "storm", Side: SideBase, Seed: 1, File: "scenarios/storm.yaml",
				Failed: []string{"client_relists: got 1, want = 0"},
			},
			{
				Scenario: "storm", Side: SideHead, Seed: 1, File: "scenarios/storm.yaml",
				Failed: []string{"client_relists: got 2, want = 0"},
			},
			{
				Scenario: "glitch", Side: SideBase, Seed: 3, File: "scenarios/glitch.yaml",
				Failed: []string{"client_relists: got 1, want = 0"},
			},
			{Scenario: "glitch", Side: SideHead, Seed: 3, File: "scenarios/glitch.yaml", Error: "no apiserver"},
		},
	}
	return r
}

func TestGolden(t *testing.T) {
	broken := sample()
	broken.Finish(nil)
	accepted := sample()
	accepted.Runs, accepted.Accepted = accepted.Runs[:1], []Accepted{{"1a2b3c4", "it is safer so"}}
	accepted.Finish(nil)
	unchanged := sample()
	unchanged.Runs = []Run{unchanged.Runs[0], {Scenario: "leader-kill", Side: SideHead, Seed: 1, Passed: true}}
	for i := range unchanged.Figures {
		unchanged.Figures[i].Head = unchanged.Figures[i].Base
	}
	unchanged.Finish(nil)
	identical := &Report{
		Identical: true, Base: Side{Revision: "a"}, Head: Side{Revision: "b", Changed: true}, Command: "make report BASE=a",
	}
	identical.Finish(nil)
	unfinished := sample()
	unfinished.Figures, unfinished.Runs, unfinished.Unfinished = unfinished.Figures[4:5], unfinished.Runs[:1],
		[]string{"build the head: impl/hub/hub.go:1: no package"}
	unfinished.Finish(nil)
	crowded := sample()
	for i := range 100 {
		f := crowded.Figures[1]
		f.Name = fmt.Sprintf("figure %03d", i)
		f.Repeat = fmt.Sprintf("command %03d", i)
		crowded.Figures = append(crowded.Figures, f)
		crowded.Runs = append(crowded.Runs, Run{
			Scenario: fmt.Sprintf("scenario-%03d", i), Side: SideHead, Failed: []string{"x"},
		})
		crowded.Notes, crowded.Unfinished = append(crowded.Notes, "a note"), append(crowded.Unfinished, "x")
		crowded.Accepted = append(crowded.Accepted, Accepted{"x", "y"})
	}
	crowded.Finish(nil)
	for name, r := range map[string]*Report{
		"broken": broken, "accepted": accepted, "unchanged": unchanged, "identical": identical, "unfinished": unfinished,
		"crowded": crowded,
	} {
		t.Run(name, func(t *testing.T) {
			text := r.Markdown()
			if n := strings.Count(text, "\n"); n > MaxLines {
				t.Errorf("%d lines, want %d at most", n, MaxLines)
			}
			golden(t, name+".md", []byte(text+fmt.Sprintf("\nerror: %v\n", r.Err())))
		})
	}
	// The worst stands within the first five lines.
	for _, test := range []struct {
		r    *Report
		want string
	}{{broken, "leader-kill"}, {accepted, "lists of hubs at kube-apiserver"}} {
		lines := strings.Split(test.r.Markdown(), "\n")
		if head := strings.Join(lines[:5], "\n"); !strings.Contains(head, test.want) {
			t.Errorf("the worst is not at the top:\n%s", head)
		}
	}
	page, err := broken.Page()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "broken.html", page)
	for _, never := range []string{"<script", "http://", "https://", "@import", "url(", "<b>after"} {
		if bytes.Contains(page, []byte(never)) {
			t.Errorf("the page has %q: it loads nothing, and runs nothing", never)
		}
	}
	if n := bytes.Count(page, []byte(`id="first"`)); n != 1 {
		t.Errorf("%d places are the first violation", n)
	}
	golden(t, "broken.svg", broken.Picture())
	var junit bytes.Buffer
	if err := WriteJUnit(&junit, broken.Runs); err != nil {
		t.Fatal(err)
	}
	golden(t, "junit.xml", junit.Bytes())
	if err := xml.Unmarshal(junit.Bytes(), new(suites)); err != nil {
		t.Errorf("JUnit: %v", err)
	}
}

// TestLearn: bands are learned of bytes and memory. A share of a count of one would hide one more.
func TestLearn(t *testing.T) {
	of := func(kind Kind, name string, base, head float64) Figure {
		return Figure{Subject: "card", Name: name, Kind: kind, Base: same(base, 1), Head: same(head, 1)}
	}
	got := Learn(
		&Report{
			Figures: []Figure{
				of(Bytes, "bytes", 100, 101), of(Memory, "memory", 100, 95), of(Count, "lists", 1, 2), of(Time, "time", 1, 2),
			},
		},
		&Report{Figures: []Figure{of(Bytes, "bytes", 100, 98)}},
	)
	if len(got) != 2 || math.Abs(got["card: bytes"]-0.02) > 1e-9 || math.Abs(got["card: memory"]-0.05) > 1e-9 {
		t.Errorf("learned %v", got)
	}
}

// TestRounds: a scenario that was run several times is one line, which says how many of its runs failed, and holds if
// each does.
func TestRounds(t *testing.T) {
	run := func(side, scenario string, seed int64, violations int) Run {
		return Run{
			Scenario: scenario, Side: side, Seed: seed, Passed: violations == 0, Violations: violations,
			Failed: []string{fmt.Sprintf("got %d", violations)},
		}
	}
	r := &Report{Runs: []Run{
		run(SideBase, "storm", 1, 0), run(SideHead, "storm", 1, 0), run(SideBase, "storm", 1, 0),
		run(SideHead, "storm", 1, 2), run(SideHead, "storm", 1, 1),
		run(SideHead, "storm", 2, 0), run(SideBase, "glitch", 1, 1), run(SideHead, "glitch", 1, 1),
		run(SideHead, "glitch", 1, 0),
	}}
	s := r.Sum()
	if len(s.Broken) != 1 || s.Broken[0].why() != "got 2 (2 of 3 runs)" || s.RunsOfHead != 3 || s.RunsOfHeadThatHold != 1 {
		t.Errorf("%+v", s)
	}
	var order []string
	for _, run := range beside([]Run{
		{Side: SideBase, Seed: 1}, {Side: SideHead, Seed: 1}, {Side: SideBase, Seed: 2}, {Side: SideHead, Seed: 2},
		{Side: SideHead, Seed: 3},
	}) {
		order = append(order, fmt.Sprint(run.Side, run.Seed))
	}
	if diff := cmp.Diff([]string{"base1", "head1", "base2", "head2", "head3"}, order); diff != "" {
		t.Errorf("side by side: %s", diff)
	}
	if len(s.AlsoBase) != 1 || s.AlsoBase[0].why() != "got 1 (1 of 2 runs)" {
		t.Errorf("at the base as well: %+v", s.AlsoBase)
	}
}

func TestJSON(t *testing.T) {
	r := sample()
	r.Finish(nil)
	var first, second bytes.Buffer
	if err := r.WriteJSON(&first); err != nil {
		t.Fatal(err)
	}
	read, err := Read(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	read.Finish(nil)
	if err := read.WriteJSON(&second); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first.String(), second.String()); diff != "" {
		t.Errorf("what was read and judged anew differs:\n%s", diff)
	}
	for name, text := range map[string]string{
		"another schema": `{"schema":"weir.change/9"}`, "no schema": `{}`, "no JSON": "weir",
		"an unknown field": `{"schema":"weir.change/1","colour":"red"}`, "a list": `[]`,
	} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s is read without an error", name)
		}
	}
}

// TestSchemaIsTold: the README names each field of the JSON.
func TestSchemaIsTold(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() {
			return
		}
		for f := range of.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" && name != "-" && !bytes.Contains(text, []byte("`"+name+"`")) {
				t.Errorf("README.md does not tell of %s, a field of %s", name, of.Name())
			}
			if f.IsExported() {
				look(f.Type)
			}
		}
	}
	look(reflect.TypeFor[Report]())
	if !bytes.Contains(text, []byte("`"+Schema+"`")) {
		t.Errorf("README.md does not tell of %s", Schema)
	}
}

func TestAccepted(t *testing.T) {
	for _, test := range []struct {
		message  string
		accepted int
		problem  bool
	}{
		{"hub: x\n\nPerf-OK: it is safer so\n", 1, false},
		{"hub: x\r\n\r\nbody\r\n\r\nperf-ok: it is safer so\r\n", 1, false},
		{"hub: x\n\nPerf-OK: a reason\nSigned-off-by: x\nPerf-OK: another\n", 2, false},
		{"hub: x\n\nPerf-OK:\n", 0, true},
		{"hub: x\n\nPerf-OK: in the middle\n\nthe end\n", 0, true},
		{"hub: x\n\nperf-ok:   with spaces around  \n", 1, false},
		{"Merge branch 'x'\n\n# Conflicts:\n\nPerf-OK: of a merge", 1, false},
		{"hub: Perf-OK: no trailer", 0, false},
		{"", 0, false},
	} {
		got, problem := ReadAccepted("abc", test.message)
		if len(got) != test.accepted || (problem != "") != test.problem {
			t.Errorf("%q: %v, %q", test.message, got, problem)
		}
	}
}

func TestSameCode(t *testing.T) {
	const code = "package a\n\n// F is.\nfunc F() int {\n\treturn 1 // one\n}\n"
	for _, test := range []struct {
		name, b string
		want    bool
	}{
		{"itself", code, true},
		{"another comment", strings.ReplaceAll(code, "// one", "// the first"), true},
		{
			"a comment of several lines more", strings.ReplaceAll(code, "// F is.", "// F is.\n// It is one.\n\n// And more."),
			true,
		},
		{"no comments", "package a\n\nfunc F() int {\n\treturn 1\n}\n", true},
		{"another number", strings.ReplaceAll(code, "return 1", "return 2"), false},
		{"a directive", "//go:build linux\n\n" + code, false},
		{"a directive of a function", strings.ReplaceAll(code, "// F is.", "//go:noinline"), false},
		{"a string that looks like a comment", strings.ReplaceAll(code, "return 1", `return len("// 1")`), false},
		{"no Go", "packag", false},
	} {
		if got := SameCode([]byte(code), []byte(test.b)); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

func TestHistory(t *testing.T) {
	var h History
	for i, v := range []float64{812, 812, 820, 842} {
		r := &Report{
			Began: time.Date(2026, 11, 20+i, 0, 0, 0, 0, time.UTC), Head: Side{Revision: fmt.Sprintf("rev%d", i)},
			Figures: []Figure{
				{Subject: "heartbeat", Name: "bytes", Unit: "B", Kind: Bytes, Head: same(v, 3)},
				{Subject: "get", Name: "time", Unit: "s", Kind: Time, Head: same(v, 3)},
			},
		}
		if i > 1 {
			r.Figures = append(r.Figures, Figure{Subject: "late", Name: "comer", Kind: Count, Head: same(0, 1)})
		}
		if i == 2 {
			r.Accepted = []Accepted{{"x", "safer\tso"}}
		}
		h.Add(r, SideHead)
		h.Add(r, SideHead) // the same revision again: one line
	}
	golden(t, "history.tsv", []byte(h.String()))
	read, err := ReadHistory([]byte(h.String()))
	if err != nil {
		t.Fatal(err)
	}
	if read.String() != h.String() {
		t.Errorf("read and written again:\n%s", read.String())
	}
	page, err := read.Page()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "history.html", page)
	if got := read.Drift(4, 0.03, nil); len(got) != 0 {
		t.Errorf("drift over four changes, one of which was accepted: %v", got)
	}
	read.Rows[2].Reason = ""
	if got := read.Drift(4, 0.03, nil); len(got) != 1 || !strings.Contains(got[0], "heartbeat") {
		t.Errorf("drift over four changes: %v", got)
	}
	if got := read.Drift(2, 0.03, nil); len(got) != 0 {
		t.Errorf("drift over two changes, of 2.7 %%: %v", got)
	}
	if got := read.Drift(4, 0.03, Bands{"heartbeat: bytes": 0.04}); len(got) != 0 {
		t.Errorf("drift within what the figure differs by from itself: %v", got)
	}
	counts := History{Columns: []string{"leader change: lists", "time [s]"}}
	for _, v := range []float64{0, 1, 2} {
		counts.Rows = append(counts.Rows, Landed{Values: []float64{v, 1 + v}})
	}
	if got := counts.Drift(2, 0.03, nil); len(got) != 0 {
		t.Errorf("one list more: %v", got)
	}
	if got := counts.Drift(3, 0.03, nil); len(got) != 1 || !strings.Contains(got[0], "+2") {
		t.Errorf("two lists more: %v", got)
	}
	for name, test := range map[string]struct {
		values []float64
		want   string
	}{
		"what one measurement says of eight":  {[]float64{5.78, 6.39, 6.00, 5.90, 5.98, 5.99, 5.82, 6.50}, ""},
		"one per cent at each of eight":       {[]float64{100, 101, 102, 103, 104, 105, 106, 107}, "memory: +5.0 %"},
		"a step, and all after it":            {[]float64{100, 100, 100, 100, 100, 104, 104, 104}, "memory: +4.0 %"},
		"a figure that is measured since now": {[]float64{math.NaN(), math.NaN(), 100}, ""},
	} {
		memory := History{Columns: []string{"memory [B]"}}
		for _, v := range test.values {
			memory.Rows = append(memory.Rows, Landed{Values: []float64{v}})
		}
		if got := strings.Join(memory.Drift(20, 0.03, nil), "; "); got != test.want {
			t.Errorf("%s: drift %q, want %q", name, got, test.want)
		}
	}
	old := &Report{Base: Side{Revision: "rev1", Date: "2026-11-19"}, Head: Side{Revision: "rev3"}, Figures: []Figure{
		{Subject: "heartbeat", Name: "bytes", Unit: "B", Kind: Bytes, Base: same(700, 3), Head: same(9, 3)},
	}}
	read.Add(old, SideBase)
	if r := read.Rows[1]; len(read.Rows) != 4 || r.Revision != "rev1" || r.Date != "2026-11-19" || r.Values[0] != 700 {
		t.Errorf("the base of a report, in the place where it was: %+v", read.Rows)
	}
	for _, bad := range []string{
		"", "x", "date\trevision\taccepted\ta\n1\t2\t3\n", "date\trevision\taccepted\ta\n1\t2\t3\tx\n",
	} {
		if _, err := ReadHistory([]byte(bad)); err == nil {
			t.Errorf("%q is a history", bad)
		}
	}
}

// TestPlanted: what was measured of a head with three bugs, on a machine that others used (testdata/planted.json): a
// heartbeat of ten bytes more, one list more for each leader, and a get that is slower. Each is named, and nothing else
// is called worse.
func TestPlanted(t *testing.T) {
	f, err := os.Open("testdata/planted.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	r.Finish(nil)
	named := map[string]Verdict{}
	for _, l := range r.Lines {
		if l.Verdict != Same && l.Verdict != Unjudged {
			named[l.Subject] = l.Verdict
		}
	}
	if diff := cmp.Diff(map[string]Verdict{"heartbeat": Worse, "leader change": Worse, "get": Worse, "start": Worse},
		named); diff != "" {
		t.Errorf("what is named (-want +got):\n%s", diff)
	}
	golden(t, "planted.md", []byte(r.Markdown()))
	// The base against itself, of the same measurement.
	for i := range r.Figures {
		r.Figures[i].Head = r.Figures[i].Again
	}
	r.Finish(nil)
	if err := r.Err(); err != nil {
		t.Errorf("the base against itself: %v:\n%s", err, r.Markdown())
	}
}

// TestTrack: what the runner writes becomes lanes, with a beginning that is the way's and not the timeline's.
func TestTrack(t *testing.T) {
	hub := func(at time.Duration, node, role, source string) timeline.Event {
		return timeline.Event{
			At: at, Lane: timeline.Leader, Way: "weir", Node: node, Name: "hub",
			Strings: map[string]string{"role": role, "source": source, "reason": "r"},
		}
	}
	events := []timeline.Event{
		{At: 20 * time.Second, Lane: timeline.Phase, Name: "sync"},
		hub(20*time.Second, "edge-1", "Pending", "nowhere"), hub(21*time.Second, "edge-1", "Leader", "cloud"),
		hub(22*time.Second, "edge-1", "Leader", "cloud"),
		hub(21*time.Second, "edge-2", "Follower", "coordinator"),
		{
			At: 29 * time.Second, Lane: timeline.Client, Way: "weir", Node: "edge-2", Name: "re-listed",
			Numbers: map[string]float64{"times": 2}, Strings: map[string]string{"client": "json", "cause": "410"},
		},
		{At: 30 * time.Second, Lane: timeline.Phase, Name: "end"},
	}
	res := report.Result{
		Outcome: report.Outcome{
			Scenario: "x", Seed: 7, Metrics: report.Values{"watch_violations": 1},
			Expectations: []report.Expectation{{Name: "watch_violations", Got: "1", Want: "= 0"}},
		},
		Marks: []report.Mark{
			{Way: "weir", Seconds: 0, Label: "sync"}, {Way: "weir", Seconds: 4, Label: "kill hub/edge-1", Fault: true},
		},
		Series: []report.Series{
			{Way: "weir", Class: "pool", Direction: "down", Bytes: []int64{5, 7}},
			{Way: "weir", Class: "pool", Direction: "up", Bytes: []int64{1}}, {Way: "stock", Class: "pool", Bytes: []int64{9}},
		},
		Violations: []report.Violation{
			{Way: "weir", Node: "edge-2", Client: "json", Rule: "ordered", Detail: "d", Seconds: 6}, {Way: "stock", Seconds: 1},
		},
	}
	run := NewRun(SideHead, "scenarios/x.yaml", "", res, events)
	want := &Track{Title: "x", Seconds: 10, Marks: []Mark{{At: 4, Label: "kill hub/edge-1"}}, Lanes: []Lane{
		{Name: "link, class pool", Kind: LaneLink, Unit: "B", Amounts: []float64{6, 7}},
		{Name: "edge-1 is", Kind: LaneRole, Spans: []Span{{0, 1, "Pending", "r"}, {1, 10, "Leader", "r"}}},
		{Name: "edge-2 is", Kind: LaneRole, Spans: []Span{{1, 10, "Follower", "r"}}},
		{Name: "edge-1 reads", Kind: LaneCache, Spans: []Span{{0, 1, "nowhere", "r"}, {1, 10, "cloud", "r"}}},
		{Name: "edge-2 reads", Kind: LaneCache, Spans: []Span{{1, 10, "coordinator", "r"}}},
		{
			Name: "edge-2 streams", Kind: LaneStreams, Moments: []Mark{
				{6, "json: ordered: d", true}, {10, "json listed  again, 2 times: 410", false},
			},
		},
	}}
	if diff := cmp.Diff(want, run.Track); diff != "" {
		t.Errorf("track (-want +got):\n%s", diff)
	}
	if run.Violations != 1 || run.First == nil || run.First.Seconds != 6 || len(run.Failed) != 1 {
		t.Errorf("run: %+v", run)
	}
	for state, class := range map[string]string{
		"Leader": "one", "cloud": "one", "Follower": "two", "coordinator": "two", "Pending": "three", "nowhere": "three",
		"": "none",
	} {
		if got := stateOf(state).class; got != class {
			t.Errorf("%s is drawn as %s, want %s", state, got, class)
		}
	}
}
