package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/scenario"
)

const maxSeeds = 1000

// runSeeds runs a scenario with several seeds, one after another. The table is rewritten after each.
func runSeeds(ctx context.Context, s *scenario.Scenario, f scenarioFlags, stdout, stderr io.Writer) error {
	began, first := time.Now(), s.Seed
	dir := filepath.Join(f.out, s.Name+"-seeds")
	repeat := fmt.Sprintf("bin/weir scenario run %s --seed %d --seeds %d", s.File, first, f.seeds)
	var results []report.Result
	var outcomes []report.Outcome // that the machine-readable form has
	var failed error
	for s.Seed = first; s.Seed < first+int64(f.seeds); s.Seed++ {
		one := f
		one.out = filepath.Join(dir, fmt.Sprint(s.Seed))
		result, err := runOne(ctx, s, one, stdout, stderr)
		if ctx.Err() != nil {
			return errors.Join(failed, errors.New("interrupted"))
		}
		results, outcomes = append(results, result), append(outcomes, result.Outcome)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("seed %d: %w", s.Seed, err))
		}
		note := fmt.Sprintf("Revision %s, %s, %s in all.", revision(ctx), began.UTC().Format(time.RFC3339),
			time.Since(began).Round(time.Second))
		if err := report.WriteSheet(dir, seedSheet(results, repeat, note), outcomes); err != nil {
			return errors.Join(failed, err)
		}
		fmt.Fprintf(stderr, "%d of %d seeds: %s\n", len(results), f.seeds, filepath.Join(dir, "summary.md"))
	}
	return failed
}

// seedSheet lays runs of one scenario side by side.
func seedSheet(results []report.Result, repeat, note string) report.Sheet {
	g := report.Grid{Columns: []string{"seed"}}
	// others ended early.
	fullest := slices.MaxFunc(results, func(a, b report.Result) int { return len(a.Expectations) - len(b.Expectations) })
	for _, e := range fullest.Expectations {
		g.Columns = append(g.Columns, e.Name+" "+e.Want)
	}
	g.Columns = append(g.Columns, "uplink")
	held := 0
	for _, r := range results {
		row := report.GridRow{Fields: []string{fmt.Sprint(r.Seed)}, Good: r.Passed, Bad: !r.Passed}
		for _, e := range r.Expectations {
			row.Fields = append(row.Fields, e.Got)
		}
		for len(row.Fields) < len(g.Columns)-1 {
			row.Fields = append(row.Fields, "")
		}
		if r.Passed {
			held++
		}
		row.Fields = append(row.Fields,
			fmt.Sprintf("%.0f kB", float64(r.Bytes.Sum(report.ByteRow{Way: report.WayWeir}))/1000))
		g.Rows = append(g.Rows, row)
	}
	return report.Sheet{
		Title: results[0].Scenario, Passed: held == len(results), Repeat: repeat,
		Note: strings.TrimSpace(fullest.Description + " " + note), Grids: []report.Grid{g},
		Lead: fmt.Sprintf("%d of %d seeds held all that is expected.", held, len(results)),
	}
}
