package repository

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/report"
)

// maxBaseline bounds a file of reports/baseline: it is small.
const maxBaseline = 32 << 10

// TestBaselines: each can be read, is of a run that passed, is small, and says why it is as it is.
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
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range files {
		r, err := report.Load(path)
		if err != nil {
			t.Error(err)
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		switch name := strings.TrimSuffix(filepath.Base(path), ".json"); {
		case r.Scenario != name || !r.Passed || info.Size() > maxBaseline:
			t.Errorf("%s: of scenario %s, passed %t, %d bytes", path, r.Scenario, r.Passed, info.Size())
		case reasons[name] != r.Revision:
			t.Errorf("%s is of revision %s, CHANGES.tsv says %q: make baseline writes both", path, r.Revision, reasons[name])
		}
	}
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
