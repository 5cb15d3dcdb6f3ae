package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/report"
)

var (
	update  = flag.Bool("update", false, "write the golden files anew")
	example = flag.String("example", "", "write reports on made-up runs into this folder, to look at them")
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: run with -update to make it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestSummary(t *testing.T) {
	early := report.Result{
		Outcome: report.Outcome{Scenario: "pool-cache", Seed: 7, Passed: true},
		Error:   "kube-apiserver: port 6443 is taken: stop what listens there",
	}
	for name, r := range map[string]report.Result{
		"passed": sample(5), "failed": failedSample(), "ended-early": early, "empty": {}, "hostile": hostile(),
	} {
		t.Run(name, func(t *testing.T) { golden(t, "summary-"+name+".md", report.Summary(r)) })
	}
}

func TestCompare(t *testing.T) {
	a, b := sample(5), failedSample()
	b.Scenario, b.Runtime, b.Seed = a.Scenario, "kind", a.Seed+1
	delete(b.Metrics, "cache_ready_seconds")
	b.Metrics["cloud_bytes_up"] = a.Metrics["cloud_bytes_up"] * 1.2 // to be marked
	b.Expectations = append(b.Expectations[1:], report.Expectation{Name: "new one", Passed: true, Got: "1", Want: "1"})
	b.Expectations[0].Want = "≤ 1.500"
	for i := range b.Bytes {
		b.Bytes[i].Bytes += b.Bytes[i].Bytes / 16
	}
	got, err := report.Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "compare.md", got)

	b.Scenario = "another"
	if _, err := report.Compare(a, b); err == nil {
		t.Error("runs of two scenarios were compared")
	}
}

func TestWriteAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out", "pool-cache")
	want := sample(5)
	if err := report.Write(dir, want); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "result.json")} {
		got, err := report.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("loaded from %s (-want +got):\n%s", path, diff)
		}
	}

	// A run without series takes away the plot of the run before.
	if err := report.Write(dir, report.Result{Outcome: report.Outcome{Scenario: "pool-cache"}}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"report.html", "result.json", "summary.md"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestWriteSaysWhatStandsInItsWay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := report.Write(filepath.Join(file, "out"), sample(1)); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("Write below a file: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "report.html"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := report.Write(dir, sample(1)); err == nil {
		t.Error("Write over a folder gave no error")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"not JSON": "<html>", "cut off": `{"scenario":"x"`, "another object": `{"kind":"List"}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "result.json")
			if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
				t.Fatal(err)
			}
			if r, err := report.Load(path); err == nil {
				t.Errorf("loaded %+v", r)
			}
		})
	}
	if _, err := report.Load(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of an empty folder: %v", err)
	}
}

// TestOutcome pins the object that programs read.
func TestOutcome(t *testing.T) {
	r := report.Result{Outcome: report.Outcome{
		Scenario: "x", Seed: 3, Passed: true,
		Expectations: []report.Expectation{{Name: "a", Passed: false, Got: "<2>", Want: "1"}},
		Metrics:      report.Values{"a": 1.5, "nan": math.NaN(), "inf": math.Inf(1)},
	}}
	for name, tc := range map[string]struct {
		in   report.Result
		want string
	}{
		"full": {
			r, `{"scenario":"x","seed":3,"passed":false,"expectations":[{"name":"a","passed":false,"got":"<2>","want":"1"}],` +
				`"metrics":{"a":1.5}}`,
		},
		"empty": {report.Result{}, `{"scenario":"unnamed","seed":0,"passed":false,"expectations":[],"metrics":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var out, compact bytes.Buffer
			if err := report.WriteOutcome(&out, tc.in); err != nil {
				t.Fatal(err)
			}
			if err := json.Compact(&compact, out.Bytes()); err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(compact.String()); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestIndex(t *testing.T) {
	page, err := report.Index([]report.Entry{
		{Dir: "pool-cache", Result: sample(5)}, {Dir: "leader kill?#", Result: failedSample()},
	})
	if err != nil {
		t.Fatal(err)
	}
	checkHTML(t, page)
	failed, passed := bytes.Index(page, []byte(`href="leader%20kill%3F%23/report.html"`)),
		bytes.Index(page, []byte(`href="pool-cache/report.html"`))
	if failed < 0 || passed < failed {
		t.Errorf("links at %d and %d: want the failed scenario first", failed, passed)
	}
	if !bytes.Contains(page, []byte("1 of 2 scenarios failed.")) {
		t.Error("the page does not say how many failed")
	}
}

func TestIndexSummary(t *testing.T) {
	failover := sample(5)
	failover.Scenario, failover.Metrics["failover_seconds_p99"] = "leader-kill", 1.25
	got := report.IndexSummary([]report.Entry{
		{Dir: "pool-cache", Result: sample(5)}, {Dir: "leader-kill", Result: failover},
		{Dir: "a (b)", Result: failedSample()},
	})
	for _, want := range []string{
		"✘ Weir scenarios: 1 of 3 scenarios failed", "(a%20%28b%29/summary.md)", "| failover p99 |", "| 1.25 s |",
	} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestPercentile(t *testing.T) {
	values := []float64{5, 1, 4, 2, 3}
	for p, want := range map[float64]float64{0: 1, 20: 1, 21: 2, 50: 3, 99: 5, 100: 5} {
		if got := report.Percentile(values, p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
	if !math.IsNaN(report.Percentile(nil, 50)) {
		t.Error("there is a percentile of nothing")
	}
}

// TestMetricsAreDocumented holds the documented metrics against what a run reports.
func TestMetricsAreDocumented(t *testing.T) {
	documented := map[string]bool{}
	for _, m := range report.Metrics() {
		if m.Name == "" || m.Doc == "" || documented[m.Name] {
			t.Errorf("metric %+v", m)
		}
		documented[m.Name] = true
	}
	for name := range sample(1).Metrics {
		if !documented[name] {
			t.Errorf("metric %q is not documented", name)
		}
	}
}

// TestExample writes reports to look at: go test ./sim/report -run TestExample -example /tmp/report.
func TestExample(t *testing.T) {
	if *example == "" {
		t.Skip("no -example folder")
	}
	var entries []report.Entry
	twenty := sample(20)
	twenty.Scenario = "pool-cache-20"
	for _, r := range []report.Result{sample(5), twenty, failedSample()} {
		if err := report.Write(filepath.Join(*example, r.Scenario), r); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, report.Entry{Dir: r.Scenario, Result: r})
	}
	if err := report.WriteIndex(*example, entries); err != nil {
		t.Fatal(err)
	}
}
