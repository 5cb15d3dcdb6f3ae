package change

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// changed is a figure that was something else before.
func changed(subject, name, unit string, kind Kind, before, after float64) Figure {
	return Figure{
		Subject: subject, Name: name, Unit: unit, Kind: kind, Base: same(before, 3), Again: same(before, 3),
		Head: same(after, 3),
	}
}

// TestCauses: what has one cause stands together, and each cause is one sentence. What could have two causes stands
// alone.
func TestCauses(t *testing.T) {
	list := changed("leader change", "lists of endpointslices by hubs at kube-apiserver", "", Count, 0, 1)
	leader := changed("leader change", "bytes of class pool", "B", Bytes, 4067, 268800)
	start := changed("start", "bytes of class pool until then", "B", Bytes, 31847, 296600)
	changes := changed("changes", "bytes of class pool for 20 changes", "B", Bytes, 20000, 22000)
	heartbeat := changed("heartbeat", "bytes of one renewal of a node's Lease, both ways", "B", Bytes, 793, 803)
	pool := changed("pool-cache", "pool_bytes_ratio", "ratio", Bytes, 1.0044, 1.5669)
	total := changed("pool-cache", "total_bytes_ratio", "ratio", Bytes, 1.0524, 1.9)
	failed := func(scenario string, promises ...string) Run {
		return Run{Scenario: scenario, Side: SideHead, Failed: promises}
	}
	for name, test := range map[string]struct {
		figures []Figure
		runs    []Run
		want    string
	}{
		"a list more, and a heartbeat": {
			figures: []Figure{total, heartbeat, start, list, pool, leader},
			runs: []Run{
				failed("pool-cache", "pool_bytes_ratio: got 1.567, want ≤ 1.020"),
				failed("leader-kill", "failover_cloud_bytes: got 151 kB, want ≤ 65.5 kB"),
			},
			want: `
✖ A leader change lists endpointslices again: +265 kB each | leader change, start, pool-cache | pool-cache, leader-kill
▲ A heartbeat costs 10 B more | heartbeat`,
		},
		"bytes that are not alike": {
			figures: []Figure{changes, list, leader, pool},
			runs:    []Run{failed("pool-cache", "pool_bytes_ratio: got 1.567, want ≤ 1.020")},
			want: `
✖ pool-cache reads 56 % more of class pool | pool-cache | pool-cache
▲ A leader change lists endpointslices again: +265 kB each | leader change
▲ 20 changes cost 2 kB more | changes`,
		},
		"the other way round": {
			figures: []Figure{
				changed("leader change", "lists of endpointslices by hubs at kube-apiserver", "", Count, 2, 1),
				changed("leader change", "bytes of class pool", "B", Bytes, 268800, 4067),
				changed("get", "CPU of the hub for 100 gets answered by a relay", "", Count, 1, 2),
			},
			want: `
▲ A get answered by a relay takes 1 more CPU, 1 → 2 | get
▼ A leader change lists endpointslices less often, 2 → 1: −265 kB each | leader change`,
		},
		"memory of a process": {
			figures: []Figure{
				changed("memory", "RssAnon of a hub", "B", Memory, 16e6, 18e6),
				changed("memory", "RssAnon of a coordinator", "B", Memory, 16e6, 19e6),
				changed("leader-kill", "hub_rss_anon_bytes_max", "B", Memory, 16e6, 17.9e6),
			},
			want: `
▲ A coordinator takes 3 MB more memory | memory
▲ A hub takes 2 MB more memory | memory, leader-kill`,
		},
		"promises": {
			figures: []Figure{list, leader},
			runs: []Run{
				failed("storm", "late_markers: got 1, want = 0"), failed("glitch", "late_markers: got 2, want = 0"),
				failed("reverse", "late_markers: got 2, want = 0", "failover_cloud_bytes: got 151 kB, want ≤ 65.5 kB"),
			},
			want: `
✖ storm: late_markers: got 1, want = 0, and so 1 more scenario | | storm, glitch
✖ reverse: late_markers: got 2, want = 0; failover_cloud_bytes: got 151 kB, want ≤ 65.5 kB | | reverse
▲ A leader change lists endpointslices again: +265 kB each | leader change`,
		},
		"what nobody has words for": {
			figures: []Figure{changed("card", "bytes of it", "B", Bytes, 100, 150)},
			want: `
▲ card: bytes of it: +50 B (+50 %) | card`,
		},
		"nothing": {figures: []Figure{changed("start", "lists", "", Count, 1, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{Figures: test.figures, Runs: test.runs}
			r.Finish(nil)
			got := ""
			for _, c := range r.causes(r.Sum()) {
				var of, runs []string
				for _, l := range c.lines {
					of = append(of, l.Subject)
				}
				for _, run := range c.broken {
					runs = append(runs, run.Scenario)
				}
				of = slices.Compact(of)
				got += strings.TrimRight(fmt.Sprintf("\n%s %s | %s | %s", c.sign(), c.says(), strings.Join(of, ", "),
					strings.Join(runs, ", ")), " |")
			}
			if diff := cmp.Diff(test.want, strings.ReplaceAll(got, "|  |", "| |")); diff != "" {
				t.Errorf("causes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSayings: there are words for each figure that was ever measured of a landed change.
func TestSayings(t *testing.T) {
	data, err := os.ReadFile("../../reports/history.tsv")
	if err != nil {
		t.Fatal(err)
	}
	h, err := ReadHistory(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range h.Columns {
		key, unit := figureOf(column)
		subject, name, _ := strings.Cut(key, ": ")
		l := Line{Figure: Figure{Subject: subject, Name: name, Unit: unit, Kind: Count}, Verdict: Worse, Before: 1, After: 2}
		if said, known := l.Says(); !known || strings.ContainsAny(said, "{$") {
			t.Errorf("%q has no words: %q", key, said)
		}
	}
}

// TestFirst: a report begins with one sentence that says what the change does.
func TestFirst(t *testing.T) {
	list := changed("leader change", "lists of endpointslices by hubs at kube-apiserver", "", Count, 0, 1)
	better := changed("heartbeat", "bytes", "B", Bytes, 803, 793)
	for name, test := range map[string]struct {
		r    Report
		want string
	}{
		"worse":    {Report{Figures: []Figure{better, list}}, "### ▲ A leader change lists endpointslices again"},
		"better":   {Report{Figures: []Figure{better}}, "### ▼ A heartbeat costs 10 B less"},
		"accepted": {Report{Figures: []Figure{list}, Accepted: []Accepted{{"a", "b"}}}, "### △ A leader change lists"},
		"not all": {
			Report{Figures: []Figure{better}, Unfinished: []string{"no disk"}}, "### ? Not all was measured: no disk",
		},
		"worse, and not all": {
			Report{Figures: []Figure{list}, Unfinished: []string{"no disk"}}, "### ▲ A leader change lists",
		},
		"nothing":   {Report{Figures: []Figure{changed("a", "b", "", Count, 1, 1)}}, "### = Nothing is better or worse"},
		"no figure": {Report{}, "### ? Nothing was measured"},
		"the same":  {Report{Identical: true}, "### = No code of Weir's commands differs"},
	} {
		t.Run(name, func(t *testing.T) {
			test.r.Finish(nil)
			if first := strings.Split(test.r.Markdown(), "\n")[1]; !strings.HasPrefix(first, test.want) {
				t.Errorf("got %s, want %s", first, test.want)
			}
		})
	}
}

// TestSketch: the picture of a comment has both sides on one scale, the lanes that differ first, and shows a moment
// that is bad whatever else is there.
func TestSketch(t *testing.T) {
	side := func(name string, amount float64, bad ...Mark) Run {
		return Run{Scenario: "x", Side: name, Passed: len(bad) == 0, Track: &Track{
			Seconds: 60, Marks: []Mark{{At: 30, Label: "kill hub/1"}}, Lanes: []Lane{
				{Name: "link, class pool", Kind: LaneLink, Unit: "B", Amounts: []float64{10: amount}},
				{Name: "a is", Spans: []Span{{0, 60, "Leader", ""}}},
				{Name: "b is", Spans: []Span{{0, 60, "Follower", ""}}}, {Name: "c is", Spans: []Span{{0, 60, "Pending", ""}}},
				{Name: "d is", Spans: []Span{{0, 60, "Follower", ""}}, Moments: bad},
			},
		}}
	}
	r := &Report{Runs: []Run{side(SideBase, 500), side(SideHead, 1000, Mark{40, "list", false}, Mark{40, "lost", true},
		Mark{40, "list", false})}}
	got := r.sketch()
	dots := func(n int) string { return strings.Repeat("·", n) }
	follows := func(n int) string { return strings.Repeat("▅", n) }
	want := []string{
		"x                           0 s" + strings.Repeat(" ", 53) + "60 s",
		"↓ kill hub/1                " + strings.Repeat(" ", 30) + "↓",
		"link, class pool       base " + dots(10) + "▄" + dots(49),
		"  to 1000 B/s          head " + dots(10) + "█" + dots(49),
		"d is                   base " + follows(60),
		"                       head " + follows(40) + "!" + follows(19),
		"a is                   base " + strings.Repeat("█", 60),
		"                       head " + strings.Repeat("█", 60),
	}
	if len(got) != len(want)+1 {
		t.Fatalf("got %d lines:\n%s", len(got), strings.Join(got, "\n"))
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("sketch (-want +got):\n%s", diff)
	}
	if got := (&Report{}).sketch(); got != nil {
		t.Errorf("without a run: %q", got)
	}
}
