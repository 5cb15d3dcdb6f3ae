package attack

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weir-edge/weir/sim/report"
)

// reviewed are the verdicts of this table at revision cb0e56d, which the reviews are of: `weir attack --binaries` with
// the commands of that
// revision wrote them.
//
//go:embed cb0e56d.json
var reviewed []byte

func atReview() (map[string]string, error) {
	m := map[string]string{}
	if err := json.Unmarshal(reviewed, &m); err != nil {
		return nil, fmt.Errorf("read what was seen at the review: %w", err)
	}
	return m, nil
}

// Result is what result.json holds.
type Result struct {
	Revision string    `json:"revision"`
	Started  time.Time `json:"started"`
	Passed   bool      `json:"passed"`
	Rows     []Row     `json:"rows"`
}

// NewResult judges rows: all have to be refused.
func NewResult(rows []Row, revision string, started time.Time) Result {
	r := Result{Revision: revision, Started: started.UTC().Truncate(time.Second), Passed: len(rows) > 0, Rows: rows}
	for _, row := range rows {
		r.Passed = r.Passed && row.Verdict == Refused
	}
	return r
}

// Write writes the report of a result.
func (r Result) Write(dir, repeat string) error {
	counts := map[Verdict]int{}
	g := report.Grid{
		Columns: []string{"verdict", "no.", "position", "goal", "sent", "expected", "seen", "control", "at cb0e56d"},
	}
	for _, row := range r.Rows {
		counts[row.Verdict]++
		g.Rows = append(g.Rows, report.GridRow{
			Fields: []string{
				string(row.Verdict), row.Number, string(row.Position), row.Goal, row.Sent, row.Expected, row.Seen, row.Control,
				row.Review,
			},
			Good: row.Verdict == Refused, Bad: row.Verdict != Refused,
		})
	}
	lead := fmt.Sprintf(
		"%d of %d attacks are refused, %d succeed, %d could not be judged.", counts[Refused], len(r.Rows),
		counts[Succeeded], counts[NoControl]+counts[NotAttempted],
	)
	return report.WriteSheet(dir, report.Sheet{
		Title: "Attacks", Passed: r.Passed, Lead: lead, Repeat: repeat, Grids: []report.Grid{g, positions()},
		Note: fmt.Sprintf(
			"Revision %s, %s. An answer marked (!) is not what it has to be.", r.Revision,
			r.Started.Format(time.RFC3339),
		),
	}, r)
}

// positions explains them.
func positions() report.Grid {
	return report.Grid{Columns: []string{"position", "who"}, Rows: []report.GridRow{
		{Fields: []string{string(Pod), "an unprivileged pod that reaches the hub of its node"}},
		{Fields: []string{string(Member), "root on a node of the pool"}},
		{Fields: []string{string(Foreigner), "root on a node of another pool"}},
		{Fields: []string{string(Holder), "has a token that is stolen, expired or revoked"}},
		{Fields: []string{string(Neighbour), "on the network of the pool, without credentials"}},
		{Fields: []string{string(Leader), "leads the pool, and lies"}},
		{Fields: []string{string(Thief), "has the disk of a node"}},
		{Fields: []string{string(Coordinator), "is the coordinator, and lies"}},
	}}
}
