package mutant

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/report"
)

// Result is what result.json holds.
type Result struct {
	Revision string        `json:"revision"`
	Started  time.Time     `json:"started"`
	Took     time.Duration `json:"nanoseconds"`
	Load     Load          `json:"load"`
	Passed   bool          `json:"passed"`
	Rows     []Row         `json:"rows"`
}

// Load is how busy the machine was: the least and the most of its load average over a minute.
type Load struct {
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

// See takes the load of now into account, where the kernel tells it.
func (l *Load) See() {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return
	}
	var now float64
	if _, err := fmt.Sscan(string(text), &now); err != nil {
		return
	}
	if l.Most == 0 || now < l.Least {
		l.Least = now
	}
	l.Most = max(l.Most, now)
}

// NewResult judges rows: all have to be caught.
func NewResult(rows []Row, revision string, started time.Time) Result {
	r := Result{
		Revision: revision, Started: started.UTC().Truncate(time.Second), Took: time.Since(started).Round(time.Second),
		Passed: len(rows) > 0, Rows: rows,
	}
	for _, row := range rows {
		r.Passed = r.Passed && row.Verdict == Caught
	}
	return r
}

// Write writes the report of a result.
func (r Result) Write(dir, repeat string) error {
	g := report.Grid{
		Columns: []string{"verdict", "mutant", "what would go wrong", "place", "check", "target", "caught by", "s"},
	}
	caught, within := 0, map[Target]int{}
	for _, row := range r.Rows {
		if row.Verdict == Caught {
			caught++
			within[row.Check.Target]++
		}
		g.Rows = append(g.Rows, report.GridRow{
			Fields: []string{
				string(row.Verdict), row.Name, row.Why, fmt.Sprintf("%s:%d %s", row.File, row.Line, row.In), row.Check.String(),
				string(row.Check.Target), strings.TrimSpace(row.By + " " + cut(row.Said)), fmt.Sprintf("%.1f", row.Took.Seconds()),
			},
			Good: row.Verdict == Caught, Bad: row.Verdict != Caught,
		})
	}
	var targets []string
	for _, t := range []Target{Test, Race, Simulate} {
		if within[t] > 0 {
			targets = append(targets, fmt.Sprintf("%d within `make %s`", within[t], t))
		}
	}
	return report.WriteSheet(dir, report.Sheet{
		Title: "Planted bugs", Passed: r.Passed, Repeat: repeat, Grids: []report.Grid{g},
		Lead: fmt.Sprintf("%d of %d planted bugs are caught, each by the check that its entry names: %s.", caught,
			len(r.Rows), strings.Join(targets, ", ")),
		Note: fmt.Sprintf("Revision %s, %s, %s in all, on %d CPUs with a load of %.0f to %.0f.",
			r.Revision, r.Started.Format(time.RFC3339), r.Took, runtime.NumCPU(), r.Load.Least, r.Load.Most),
	}, r)
}

// Resume reads the report of an earlier run. There may be none.
func Resume(dir string) (r Result, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "result.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return Result{}, fmt.Errorf("resume: %w", err)
	}
	return r, nil
}

const mostWords = 160

// cut shortens what a test said.
func cut(s string) string {
	if r := []rune(s); len(r) > mostWords {
		return string(r[:mostWords]) + " ..."
	}
	return s
}
