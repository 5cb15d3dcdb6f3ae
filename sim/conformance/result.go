package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Result is what is reported.
type Result struct {
	Revision   string            `json:"revision"`
	Kubernetes string            `json:"kubernetes"`
	Started    time.Time         `json:"started"`
	Seconds    float64           `json:"seconds"`
	Passed     bool              `json:"passed"`
	Error      string            `json:"error,omitempty"` // that ended the run
	Relayed    map[string]Routes `json:"relayed"`         // by column
	Specs      map[string]*Row   `json:"specs"`
}

// Routes counts requests that a hub answered.
type Routes struct {
	Relay int `json:"relay"`
	Cloud int `json:"cloud"`
}

// Row is what became of a spec.
type Row struct {
	Columns  map[string]*Count `json:"columns"`
	Failures []string          `json:"failures,omitempty"` // the first few
}

// Count counts runs.
type Count struct {
	Passed  int `json:"passed"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
}

// maxFailures of a spec are told.
const maxFailures = 6

func (r *Result) add(column string, o outcome) {
	row := r.Specs[o.name()]
	if row == nil {
		row = &Row{Columns: map[string]*Count{}}
		r.Specs[o.name()] = row
	}
	c := row.Columns[column]
	if c == nil {
		c = &Count{}
		row.Columns[column] = c
	}
	switch o.State {
	case passedState:
		c.Passed++
	case skippedState:
		c.Skipped++
	default:
		c.Failed++
		if len(row.Failures) < maxFailures {
			message := strings.Join(strings.Fields(o.Failure.Message), " ")
			row.Failures = append(row.Failures, fmt.Sprintf("%s, %s:%d: %s", column,
				filepath.Base(o.Failure.Location.FileName), o.Failure.Location.LineNumber, message[:min(len(message), 300)]))
		}
	}
}

// Verdict of a spec.
type Verdict string

// The verdicts. Failed is Weir's fault; with that, or with NotRun, the run has not passed.
const (
	Passed   Verdict = "passed"
	Failed   Verdict = "FAILED"
	Deviates Verdict = "deviates" // as is stated
	Unjudged Verdict = "unjudged" // it does not pass straight either
	Skipped  Verdict = "skipped"
	NotRun   Verdict = "NOT RUN" // each way: the run was ended
)

// Verdict reports whether a spec that passes straight passes through hubs.
func (r *Result) Verdict(spec string) Verdict {
	row := r.Specs[spec]
	straight := row.Columns[string(Straight)]
	switch {
	case slices.ContainsFunc(Ways, func(w Way) bool { return row.Columns[string(w)] == nil }):
		return NotRun
	case straight.Failed > 0:
		return Unjudged
	case straight.Passed == 0:
		return Skipped
	case !r.failedAtHub(spec):
		return Passed
	case Deviations[spec] != "":
		return Deviates
	}
	return Failed
}

// judgedDown reports whether a spec has passed straight and not through hubs: it is worth another look.
func (r *Result) judgedDown(spec string) bool {
	return r.Specs[spec] != nil && slices.Contains([]Verdict{Failed, Deviates}, r.Verdict(spec))
}

// failedAtHub reports whether a spec has failed, or was skipped, through a hub.
func (r *Result) failedAtHub(spec string) bool {
	row := r.Specs[spec]
	if row == nil {
		return false
	}
	for column, c := range row.Columns {
		if column != string(Straight) && (c.Failed > 0 || c.Passed == 0) {
			return true
		}
	}
	return false
}

func (r *Result) columns() []string {
	var all []string
	for _, row := range r.Specs {
		for c := range row.Columns {
			if !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return rank(a) - rank(b) })
	return all
}

// rank orders columns: without a delay first, and each in the order of the ways.
func rank(column string) int {
	way, delay, _ := strings.Cut(column, " ")
	return slices.Index(Ways, Way(way)) + len(delay)*len(Ways)
}

// Judge sets Passed, and returns how many specs have each verdict.
func (r *Result) Judge() map[Verdict]int {
	counts := map[Verdict]int{}
	for spec := range r.Specs {
		counts[r.Verdict(spec)]++
	}
	r.Passed = r.Error == "" && counts[Failed]+counts[NotRun] == 0 && counts[Passed] > 0
	return counts
}

// Write writes result.json and summary.md.
func (r *Result) Write(dir, repeat string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	counts := r.Judge()
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "result.json"), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "summary.md"), []byte(r.summary(counts, repeat)), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func (r *Result) summary(counts map[Verdict]int, repeat string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Kubernetes' end-to-end specs through hubs\n\n")
	fmt.Fprintf(&b, "Revision `%s`, Kubernetes %s, %s, %.0f minutes. Again: `%s`.\n\n", r.Revision, r.Kubernetes,
		r.Started.UTC().Format(time.DateTime), r.Seconds/60, repeat)
	if r.Error != "" {
		fmt.Fprintf(&b, "**The run did not come to its end**: %s\n\n", r.Error)
	}
	fmt.Fprintf(&b, "Specs: %d. Passed straight and through each hub: %d. Failed through a hub and not straight: "+
		"**%d**. Stated deviations: %d. ", len(r.Specs), counts[Passed], counts[Failed], counts[Deviates])
	fmt.Fprintf(&b, "Not passed straight, so not judged: %d. Skipped by themselves: %d. Not run each way: %d.\n\n",
		counts[Unjudged], counts[Skipped], counts[NotRun])
	b.WriteString("| runs | passed | failed | skipped | requests answered by relays | by the cloud |\n| --- | ---: | " +
		"---: | ---: | ---: | ---: |\n")
	columns := r.columns()
	for _, c := range columns {
		var sum Count
		for _, row := range r.Specs {
			if n := row.Columns[c]; n != nil {
				sum.Passed, sum.Failed, sum.Skipped = sum.Passed+n.Passed, sum.Failed+n.Failed, sum.Skipped+n.Skipped
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d |", c, sum.Passed, sum.Failed, sum.Skipped)
		if routes, ok := r.Relayed[c]; ok {
			fmt.Fprintf(&b, " %d | %d |\n", routes.Relay, routes.Cloud)
		} else {
			b.WriteString(" | |\n")
		}
	}
	specs := make([]string, 0, len(r.Specs))
	for s := range r.Specs {
		specs = append(specs, s)
	}
	slices.Sort(specs)
	for _, v := range []Verdict{Failed, Deviates, Unjudged} {
		if counts[v] == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n", v)
		for _, s := range specs {
			if r.Verdict(s) != v {
				continue
			}
			fmt.Fprintf(&b, "\n%s\n\n", s)
			if why := Deviations[s]; why != "" {
				fmt.Fprintf(&b, "Stated: %s\n\n", why)
			}
			for _, f := range r.Specs[s].Failures {
				fmt.Fprintf(&b, "- %s\n", f)
			}
		}
	}
	fmt.Fprintf(&b, "\n## All\n\nPassed of runs.\n\n| spec | verdict | %s |\n| --- | --- |%s\n",
		strings.Join(columns, " | "), strings.Repeat(" ---: |", len(columns)))
	for _, s := range specs {
		fmt.Fprintf(&b, "| %s | %s |", strings.ReplaceAll(s, "|", "\\|"), r.Verdict(s))
		for _, c := range columns {
			if n := r.Specs[s].Columns[c]; n != nil {
				fmt.Fprintf(&b, " %d/%d |", n.Passed, n.Passed+n.Failed+n.Skipped)
			} else {
				b.WriteString(" |")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
