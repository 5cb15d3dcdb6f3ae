package change

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Schema names the form of the JSON. Another form gets another number.
const Schema = "weir.change/1"

// maxReport bounds what Read takes.
const maxReport = 64 << 20

// Side is a revision.
type Side struct {
	Revision string `json:"revision"`
	Subject  string `json:"subject,omitempty"` // of its last commit
	Date     string `json:"date,omitempty"`    // of its last commit: 2026-11-23
	Changed  bool   `json:"changed,omitempty"` // with changes that are not committed
}

// Report is what was measured of a change.
type Report struct {
	Schema  string    `json:"schema"`
	Base    Side      `json:"base"`
	Head    Side      `json:"head"`
	Command string    `json:"command"` // that makes it again
	Quick   bool      `json:"quick,omitempty"`
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	Machine string    `json:"machine"`
	// the commands of both sides are the same bytes: nothing was measured twice.
	Identical bool       `json:"identical,omitempty"`
	Figures   []Figure   `json:"-"`
	Lines     []Line     `json:"lines"`
	Runs      []Run      `json:"runs,omitempty"`
	Accepted  []Accepted `json:"accepted,omitempty"`
	Notes     []string   `json:"notes,omitempty"`

	// what could not be measured, and why: the report cannot speak for it.
	Unfinished []string `json:"unfinished,omitempty"`
}

// Run is a scenario that was run.
type Run struct {
	Scenario   string   `json:"scenario"`
	Side       string   `json:"side"` // SideBase or SideHead
	Seed       int64    `json:"seed"`
	File       string   `json:"file"`
	Repeat     string   `json:"repeat"`
	Dir        string   `json:"dir,omitempty"` // of its report
	Seconds    float64  `json:"seconds"`
	Passed     bool     `json:"passed"`
	Error      string   `json:"error,omitempty"`
	Failed     []string `json:"failed,omitempty"` // expectations, with what came
	Violations int      `json:"violations,omitempty"`
	First      *Broken  `json:"first,omitempty"`
	Track      *Track   `json:"track,omitempty"`

	of, failed int // runs of its scenario, and those that failed; see worst
}

// The sides of a Run.
const (
	SideBase = "base"
	SideHead = "head"
)

// Broken is the first violation of a run.
type Broken struct {
	Seconds float64 `json:"seconds"`
	Where   string  `json:"where"`
	Rule    string  `json:"rule"`
	Detail  string  `json:"detail"`
}

// Accepted is a loss that a commit accepts.
type Accepted struct {
	Revision string `json:"revision"`
	Reason   string `json:"reason"`
}

// Finish judges the figures, ranks the lines and marks what is accepted.
func (r *Report) Finish(bands Bands) {
	r.Schema = Schema
	for i := range r.Figures {
		f := &r.Figures[i]
		f.Base, f.Again, f.Head = finite(f.Base), finite(f.Again), finite(f.Head)
	}
	r.Lines = Rank(Judge(r.Figures, bands))
	for i := range r.Lines {
		r.Lines[i].Accepted = len(r.Accepted) > 0 && r.Lines[i].Verdict.loses()
	}
}

func (v Verdict) loses() bool { return v == Worse || v == Gone }

// Rank puts what is worse first, then what is gone, better, new, not judged and unchanged; of these counts before
// bytes, memory and times, and the larger change before the smaller.
func Rank(lines []Line) []Line {
	order := []Verdict{Worse, Gone, Better, New, Unjudged, Same}
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b Line) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.Verdict), slices.Index(order, b.Verdict)),
			cmp.Compare(slices.Index(Kinds(), a.Kind), slices.Index(Kinds(), b.Kind)),
			cmp.Compare(math.Abs(b.Share()), math.Abs(a.Share())),
			cmp.Compare(a.Key(), b.Key()),
		)
	})
	return lines
}

// Total is what a report comes to.
type Total struct {
	Broken                         []Run // runs of the head that broke a promise which the base keeps
	AlsoBase                       []Run // and those that broke nothing but what the base breaks as well
	Worse, Accepted, Better        int
	Same, Unjudged, NewFigures     int
	Unmeasured                     bool // not even one figure: nothing can be said
	RunsOfHead, RunsOfHeadThatHold int  // scenarios: one holds if each of its runs does
}

// Sum counts.
func (r *Report) Sum() (t Total) {
	atBase := map[string]bool{}
	for _, run := range r.Runs {
		if run.Side == SideBase {
			for _, promise := range run.broke() {
				atBase[run.Scenario+": "+promise] = true
			}
		}
	}
	news := func(run Run) bool {
		return slices.ContainsFunc(run.broke(), func(promise string) bool { return !atBase[run.Scenario+": "+promise] })
	}
	for _, run := range r.worst(news) {
		t.RunsOfHead++
		switch {
		case run.Passed:
			t.RunsOfHeadThatHold++
		case !news(run):
			t.AlsoBase = append(t.AlsoBase, run)
		default:
			t.Broken = append(t.Broken, run)
		}
	}
	slices.SortStableFunc(t.Broken, func(a, b Run) int { return cmp.Compare(b.Violations, a.Violations) })
	for _, l := range r.Lines {
		switch {
		case l.Accepted:
			t.Accepted++
		case l.Verdict.loses():
			t.Worse++
		case l.Verdict == Better:
			t.Better++
		case l.Verdict == Unjudged:
			t.Unjudged++
		case l.Verdict == New:
			t.NewFigures++
		default:
			t.Same++
		}
	}
	t.Unmeasured = len(r.Lines) == 0 && !r.Identical
	return t
}

// worst is of each scenario and seed that the head ran the run that broke most, one that breaks what the base keeps
// before all others, with how many runs there were and how many failed.
func (r *Report) worst(news func(Run) bool) (runs []Run) {
	for _, run := range r.Runs {
		if run.Side != SideHead {
			continue
		}
		i := slices.IndexFunc(runs, func(o Run) bool { return o.Scenario == run.Scenario && o.Seed == run.Seed })
		if i < 0 {
			i = len(runs)
			runs = append(runs, run)
		}
		of, failed := runs[i].of+1, runs[i].failed
		if !run.Passed {
			failed++
			if now, before := news(run), news(runs[i]); runs[i].Passed || now && !before ||
				now == before && run.Violations > runs[i].Violations {
				runs[i] = run
			}
		}
		runs[i].of, runs[i].failed = of, failed
	}
	return runs
}

// broke are the promises that a run broke, by name.
func (r Run) broke() (promises []string) {
	if r.Passed {
		return nil
	}
	if r.Violations > 0 || r.First != nil {
		promises = append(promises, "watches")
	}
	for _, f := range r.Failed {
		name, _, _ := strings.Cut(f, ":")
		promises = append(promises, name)
	}
	if r.Error != "" || len(promises) == 0 {
		promises = append(promises, "end")
	}
	return promises
}

// Err is nil if nothing is worse that is not accepted, and no promise is broken that the base keeps.
func (r *Report) Err() error {
	t := r.Sum()
	switch {
	case len(t.Broken) > 0:
		return fmt.Errorf("%s broke a promise that the base keeps, the first: %s",
			plural(len(t.Broken), "scenario", "scenarios"), t.Broken[0].Scenario)
	case t.Worse > 0:
		return fmt.Errorf("%s worse, the first: %s; a commit accepts it by a line \"Perf-OK: reason\"",
			plural(t.Worse, "figure is", "figures are"), r.Lines[0].Key())
	case len(r.Unfinished) > 0:
		return fmt.Errorf("not all was measured: %s", r.Unfinished[0])
	case t.Unmeasured:
		return errors.New("nothing was measured: no figure of either side")
	}
	return nil
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("write the report as JSON: %w", err)
	}
	return nil
}

// Read reads what WriteJSON wrote. It refuses another schema, and fields that it does not know.
func Read(in io.Reader) (r Report, err error) {
	data, err := io.ReadAll(io.LimitReader(in, maxReport+1))
	switch {
	case err != nil:
		return r, fmt.Errorf("read a report: %w", err)
	case len(data) > maxReport:
		return r, fmt.Errorf("read a report: it has more than %d bytes", maxReport)
	}
	var head struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return r, fmt.Errorf("read a report: %w", err)
	}
	if head.Schema != Schema {
		return r, fmt.Errorf("read a report: schema %q is not %q: read it with the version of weir that wrote it",
			head.Schema, Schema)
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return r, fmt.Errorf("read a report: %w", err)
	}
	for _, l := range r.Lines {
		r.Figures = append(r.Figures, l.Figure)
	}
	return r, nil
}
