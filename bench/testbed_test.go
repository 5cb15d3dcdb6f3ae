package bench

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

var files = Testbed{Scenarios: "../scenarios"}

// missed judges figures and returns the names of those that miss their target.
func missed(figures []Figure) (names []string) {
	r := Report{Parts: []Measured{{Name: "p", Figures: figures}}}
	var m *MissedError
	if errors.As(r.Judge(), &m) {
		for _, f := range m.Figures {
			names = append(names, f.Name)
		}
	}
	return names
}

// TestTraffic plants runs of which one carries the pool's cache twice.
func TestTraffic(t *testing.T) {
	row := func(way, class string, n float64) report.ByteRow {
		return report.ByteRow{Way: way, Class: class, Direction: report.Down, Bytes: int64(n)}
	}
	results := func(pool float64) (all []report.Result) {
		for range 3 {
			all = append(all,
				report.Result{Bytes: report.ByteTable{
					row(report.WayReference, runtime.ClassPool, 1e6), row(report.WayStock, "node", 9e6),
					row(report.WayWeir, runtime.ClassPool, pool), row(report.WayWeir, runtime.ClassControl, 1e4)}},
				report.Result{
					Bytes: report.ByteTable{
						row(report.WayReference, runtime.ClassPool, 1e6), row(report.WayWeir, runtime.ClassPool, 5e6),
					},
				})
		}
		return all
	}
	figures, err := files.traffic(results(1.01e6))
	if err != nil || len(missed(figures)) > 0 {
		t.Errorf("%v, missed: %q", err, missed(figures))
	}
	if i := slices.IndexFunc(figures, func(f Figure) bool {
		return f.Name == "all bytes across the uplink, hub without a pool ÷ reference"
	}); i < 0 || figures[i].Got() != 5 {
		t.Errorf("without a pool: %v", figures)
	}
	if figures, err = files.traffic(results(2e6)); err != nil || len(missed(figures)) != 2 {
		t.Errorf("twice the cache: %v, missed: %q", err, missed(figures))
	}
}

// TestFailover plants losses after which somebody reads for the pool too soon, or service is late.
func TestFailover(t *testing.T) {
	run := func(change func(losses []report.Fault)) []report.Result {
		var r report.Result
		for i := range losses() {
			r.Faults = append(r.Faults, report.Fault{At: float64(10 * i), Reached: 2, Recovered: 1, Fresh: 1, Grace: 1})
		}
		for _, i := range []int{3, 4, 5} {
			r.Faults[i].Grace = 0
		}
		r.Faults[7].Grace, r.Faults[7].Reached = 31, 59
		if change != nil {
			change(r.Faults)
		}
		slices.Reverse(r.Faults) // a run lists them as they end
		return []report.Result{r}
	}
	for _, c := range []struct {
		change func([]report.Fault)
		missed string
	}{
		{nil, ""},
		{func(f []report.Fault) { f[0].Reached = 3.1 }, "recovery, leader killed"},
		{func(f []report.Fault) { f[1].Reached = 6.1 }, "recovery, leader frozen"},
		{func(f []report.Fault) { f[2].Reached = 6.1 }, "recovery, leader's uplink cut"},
		{func(f []report.Fault) { f[3].Grace = 5 }, "new connections of class pool, coordinator killed"},
		{func(f []report.Fault) { f[4].Recovered = 5.1 }, "recovery, coordinator restarted"},
		{func(f []report.Fault) { f[5].Grace = 1 }, "new connections of class pool, hub of a follower"},
		{func(f []report.Fault) { f[7].Grace = 29.9 }, "grace, coordinator lost for good"},
		{func(f []report.Fault) { f[7].Grace = 0 }, "grace, coordinator lost for good"}, // nobody ever went
		{func(f []report.Fault) { f[7].Reached = 64 }, "recovery, coordinator lost for good"},
	} {
		figures, err := files.failover(run(c.change))
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(missed(figures), "; ")
		if c.missed == "" && got != "" || !strings.HasPrefix(got, c.missed) || strings.Contains(got, ";") {
			t.Errorf("missed %q, want %q", got, c.missed)
		}
	}
	if _, err := files.failover([]report.Result{{}}); err == nil {
		t.Error("a run without losses is no measurement")
	}
}

// TestFailoverScenario keeps the file and the table of losses together.
func TestFailoverScenario(t *testing.T) {
	s, err := scenario.Parse("failover.yaml", failoverScenario)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Faults) != len(losses()) {
		t.Errorf("%d faults, %d kinds of loss", len(s.Faults), len(losses()))
	}
	for i, f := range s.Faults {
		if i > 0 && f.At < s.Faults[i-1].At {
			t.Errorf("fault %s comes after a later one", f)
		}
		if word, _, _ := strings.Cut(string(f.Target), "/"); word != "apiserver" &&
			!strings.Contains(losses()[i].name, word) {
			t.Errorf("fault %s is %q", f, losses()[i].name)
		}
	}
}

// TestStarts plants starts that are too slow.
func TestStarts(t *testing.T) {
	starts := func(answer, ready time.Duration) []started {
		return []started{{answer: answer, ready: ready, bytes: 1e6}}
	}
	quick := starts(100*time.Millisecond, time.Second)
	for _, c := range []struct {
		cold, dark []started
		missed     string
	}{
		{quick, quick, ""},
		{starts(time.Second, 31*time.Second), quick, "empty disks: ready"},
		{quick, starts(510*time.Millisecond, time.Second), "after a power cut, without the cloud: first answer"},
	} {
		figures, err := files.starts("a cache", c.cold, quick, c.dark, []float64{1})
		if got := strings.Join(missed(figures), "; "); err != nil || got != c.missed {
			t.Errorf("missed %q, want %q; %v", got, c.missed, err)
		}
	}
}
