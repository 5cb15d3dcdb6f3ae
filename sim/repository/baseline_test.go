package repository

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-edge/weir/bench"
	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/scenario"
)

// maxBaseline bounds a file of reports/baseline: it is small.
const maxBaseline = 32 << 10

// withoutBaseline are scenarios that have none, and why.
var withoutBaseline = map[string]string{
	"leader-kill-2000": "leader-kill-200 is the same, ten times shorter",
}

// TestBaselines: each scenario has one, and the benchmarks do. Each can be read, is of a run that passed, is small, and
// says why it is as it is.
func TestBaselines(t *testing.T) {
	dir := filepath.Join(root(t), "reports", "baseline")
	log, err := os.ReadFile(filepath.Join(dir, "CHANGES.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(log)), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 4 || f[3] == "" {
			t.Fatalf("CHANGES.tsv: %q: want a date, a revision, a scenario and a reason", line)
		}
		reasons[f[2]] = f[1]
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		there[name] = true
		of, revision, passed, err := baseline(path)
		if err != nil {
			t.Error(err)
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case of != name || !passed || info.Size() > maxBaseline:
			t.Errorf("%s: of %s, passed %t, %d bytes", path, of, passed, info.Size())
		case reasons[name] != revision:
			t.Errorf("%s is of revision %s, CHANGES.tsv says %q: make baseline writes both", path, revision, reasons[name])
		}
	}
	for _, name := range append(scenarios(t), "bench") {
		if !there[name] && withoutBaseline[name] == "" {
			t.Errorf("%s has no baseline: make scenario NAME=%s, then make baseline NAME=%s REASON='a new scenario'", name, name,
				name)
		}
	}
}

// baseline reads what a baseline is of: a scenario, or the benchmarks.
func baseline(path string) (name, revision string, passed bool, err error) {
	r, err := report.Load(path)
	if errors.Is(err, report.ErrNoScenario) {
		b, err := bench.Load(path)
		return "bench", b.Revision, err == nil, err
	}
	return r.Scenario, r.Revision, r.Passed, err
}

// scenarios are the names of all.
func scenarios(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(root(t), "scenarios", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("scenarios/%s: %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			all, err := scenario.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range all {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// TestHistory: the history can be read, and the bands are shares.
func TestHistory(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root(t), "reports", "history.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := change.ReadHistory(data); err != nil {
		t.Error(err)
	}
}

// withOwnLimit are metrics whose limits follow our own last value, and how many times as much a limit may be.
var withOwnLimit = map[string]float64{
	"quiet_received_bytes_per_second": 1.25, "cloud_watches": 1.25,
}

// TestLimits: a limit that another system sets, far above what Weir does, lets a loss pass for years. So the limit of
// what is quiet, and of watches, is a little more than in the baseline.
func TestLimits(t *testing.T) {
	limited := map[string]bool{}
	for _, pattern := range []string{"*.yaml", "*/*.yaml"} {
		paths, err := filepath.Glob(filepath.Join(root(t), "scenarios", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("scenarios/%s: %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			all, err := scenario.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			s := all[0]
			for _, e := range s.Expectations {
				most, ours := withOwnLimit[e.Metric]
				if !ours || e.Op != "<=" {
					continue
				}
				limited[e.Metric] = true
				last, err := report.Load(filepath.Join(root(t), "reports", "baseline", s.Name+".json"))
				if err != nil {
					t.Fatal(err)
				}
				if v := last.Metrics[e.Metric]; e.Limit > most*v {
					t.Errorf("%s: %s may be %v, and was %v: want a limit of %.4g at most", s.Name, e.Metric, e.Limit, v, most*v)
				}
			}
		}
	}
	for metric := range withOwnLimit {
		if !limited[metric] {
			t.Errorf("no scenario limits %s", metric)
		}
	}
}
