package grid

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/scenario"
)

// Every cell is a scenario that could stand in a file.
func TestCellsAreScenarios(t *testing.T) {
	base, err := scenario.Load("../../scenarios/leader-restart-thin.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cells := Cells()
	if len(cells) != (4*4+2)*7 {
		t.Fatalf("%d cells", len(cells))
	}
	names := map[string]bool{}
	for _, c := range cells {
		s, err := c.Scenario(base[0])
		if err != nil {
			t.Errorf("%s: %v", c.Name(), err)
			continue
		}
		if names[s.Name] || s.Topology.Pool.Uplink.Down != c.Rate || len(s.Faults) == 0 ||
			s.Workload.ChangesPerSecond > mostChanges+1 {
			t.Errorf("%s: %+v", c.Name(), s)
		}
		names[s.Name] = true
	}
}

func TestCellsAreChosenByWords(t *testing.T) {
	for words, want := range map[string]int{
		"": 126, "1Mbit": 28, "1Mbit|128kbit,60%|120%": 28, "8Mbit,20%,both": 1, "nothing": 0,
	} {
		var list []string
		if words != "" {
			list = strings.Split(words, ",")
		}
		if got := len(Cells(list...)); got != want {
			t.Errorf("%q: %d cells, want %d", words, got, want)
		}
	}
}

// The table shows what ran and what did not, and a cell whose pool never was as before is not one that held.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	ran := Cells("1Mbit", "60%", "both|leader")
	for i, c := range ran {
		res := report.Result{}
		res.Scenario, res.Revision, res.Metrics = c.Name(), []string{"abc", "def"}[i],
			report.Values{"watch_violations": 0, "cache_ready_seconds": 3}
		if i == 0 {
			res.Metrics["fresh_seconds_max"], res.Metrics["stale_seconds_max"], res.Metrics["catch_up_bytes_share"] = 4.25, 31,
				0.5
		}
		if err := report.Write(filepath.Join(dir, c.Name()), res); err != nil {
			t.Fatal(err)
		}
		if !c.Ran(dir) {
			t.Errorf("%s has no report", c.Name())
		}
	}
	if err := Write(dir, "repeat"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "summary.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2 of 126 cells ran. Revision abc and def. Changes", "| leader | 4.2 | 31 | 0.50 | - | 0 | held |",
		"| both | - | - | - | - | 0 | never as before |", "128kbit-20pct-leader",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
