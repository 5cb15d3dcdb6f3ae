package change

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/weir-edge/weir/sim/report/svg"
)

// MaxLines bounds the Markdown of a report: a reviewer reads it.
const MaxLines = 72

// What of each kind a report names; the rest is counted, and stands in the JSON and on the page.
const (
	shownCauses   = 5
	shownBroken   = 5
	shownAlso     = 2
	shownLines    = 12
	shownNotes    = 2
	shownAccepted = 2
	widestSubject = 80
)

// PictureFile is where the picture of a Markdown is, beside it.
const PictureFile = "change.svg"

// Marker stands first in a comment, so that anyone who posts it finds it again.
const Marker = "<!-- weir report -->"

// Markdown is the report for a pull request and for a terminal.
func (r *Report) Markdown() string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	t := r.Sum()
	causes := r.causes(t)
	add("%s", Marker)
	add("### %s", cell(r.lead(t, causes)))
	add("")
	add("Weir report: %s", r.headline(t, causes))
	if list := listed(causes); len(list) > 0 {
		add("")
		out = append(out, list...)
	}
	if sketch := r.sketch(); len(sketch) > 0 {
		add("")
		out = append(out, "```text")
		out = append(out, sketch...)
		add("```")
	}
	shown := 0
	for _, l := range r.table(causes) {
		if shown == 0 {
			add("")
			add("| | | of | figure | before | after | change | judged by |")
			add("| --- | --- | --- | --- | ---: | ---: | ---: | --- |")
		}
		if shown++; shown > shownLines {
			continue
		}
		before, after := l.sides()
		add("| %s | %s | %s | %s | %s | %s | %s | %s |", l.cause, l.sign(), cell(l.Subject), cell(l.Name), before, after,
			l.Delta(), cell(l.Why))
	}
	if shown > shownLines {
		add("")
		add("%d more lines are in report.json.", shown-shownLines)
	}
	if len(r.Unfinished) > 0 {
		add("")
		add("? Not measured: %s", cell(strings.Join(r.Unfinished, "; ")))
	}
	add("")
	add("= %s", r.unchanged(t))
	for i, a := range r.Accepted {
		if i == shownAccepted {
			break
		}
		add("")
		add("Accepted by %s: %s", code(a.Revision), cell(a.Reason))
	}
	for i, run := range t.AlsoBase {
		if i == shownAlso {
			break
		}
		add("")
		add("At the base as well: %s, seed %d: %s", cell(run.Scenario), run.Seed, cell(run.why()))
	}
	for i, n := range r.Notes {
		if i == shownNotes {
			break
		}
		add("")
		add("Note: %s", cell(n))
	}
	if _, ok := r.track(); ok {
		add("")
		add("![the same, with all lanes](%s)", PictureFile)
	}
	add("")
	add("<details><summary>Repeat each line, and what the words mean</summary>")
	add("")
	add("```sh")
	repeats := r.repeats(t)
	for _, c := range repeats[:min(len(repeats), max(MaxLines-len(out)-7, 1))] {
		add("%s", c)
	}
	add("```")
	add("")
	add("%s", words)
	add("</details>")
	add("")
	add("%s", r.ground())
	return strings.Join(out, "\n") + "\n"
}

// words are those that a reader may not know.
const words = "Bytes are those on the link between a pool and the cloud, both ways. *Class pool* is the one copy " +
	"that all nodes of a pool share. A ratio compares with one informer " +
	"per resource, alone. A list is a full read at kube-apiserver or the coordinator. RssAnon is the memory that a " +
	"process has for itself. n counts samples of base and head."

// listed are the causes, numbered as the table has them, each with the runs that broke a promise. What the first
// sentence of a report has said already is not said again.
func listed(causes []cause) (list []string) {
	broken := 0
	run := func(indent, sign string, run Run) {
		if broken++; broken <= shownBroken {
			list = append(list, fmt.Sprintf("%s%s **%s**, seed %d, %s: %s", indent, sign, cell(run.Scenario), run.Seed,
				code(run.File), cell(run.why())))
		}
	}
	for i, c := range causes {
		runs, indent := c.broken, "   - "
		switch number := fmt.Sprintf("%d. ", i+1); {
		case i >= shownCauses:
		case len(c.lines) == 0:
			run(number, "✖", runs[0])
			runs = runs[1:]
		case len(causes) == 1:
			indent = "- "
		default:
			list = append(list, number+c.sign()+" **"+cell(c.says())+"**")
		}
		for _, r := range runs {
			run(indent, "✖", r)
		}
	}
	var more []string
	if n := len(causes) - shownCauses; n > 0 {
		more = append(more, plural(n, "more cause", "more causes"))
	}
	if n := broken - shownBroken; n > 0 {
		more = append(more, fmt.Sprintf("%d more broken", n))
	}
	if len(more) > 0 {
		list = append(list, "", "And "+strings.Join(more, ", ")+".")
	}
	return list
}

// numbered is a line with the number of its cause, where there are several.
type numbered struct {
	Line

	cause string
}

// table are the lines that changed, those of a cause together.
func (r *Report) table(causes []cause) (lines []numbered) {
	for i, c := range causes {
		number := ""
		if len(causes) > 1 {
			number = fmt.Sprint(i + 1)
		}
		for _, l := range c.lines {
			lines = append(lines, numbered{l, number})
		}
	}
	for _, l := range r.Lines {
		if l.Verdict == New {
			lines = append(lines, numbered{l, ""})
		}
	}
	return lines
}

// headline counts it all in one line.
func (r *Report) headline(t Total, causes []cause) string {
	var parts []string
	part := func(n int, sign, word string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d %s", sign, n, word))
		}
	}
	part(len(t.Broken), "✖", "broken")
	part(t.Worse, "▲", "worse")
	part(t.Accepted, "△", "worse, accepted")
	part(t.Better, "▼", "better")
	if n := len(causes); n > 1 {
		parts = append(parts, plural(n, "cause", "causes"))
	}
	part(t.NewFigures, "+", "new")
	switch {
	case t.Unmeasured:
		parts = append(parts, "? nothing was measured")
	case len(r.Unfinished) > 0:
		parts = append(parts, "? not all was measured")
		part(t.Same, "=", "unchanged")
	case len(parts) == 0:
		parts = append(parts, "unchanged")
	default:
		part(t.Same, "=", "unchanged")
	}
	return strings.Join(parts, " · ") + fmt.Sprintf(" · %s → %s", code(r.Base.name()), code(r.Head.name()))
}

func (s Side) name() string {
	if s.Changed {
		return s.Revision + "+"
	}
	return s.Revision
}

// sides are the medians as text.
func (l Line) sides() (before, after string) {
	before, after = Format(l.Before, l.Unit), Format(l.After, l.Unit)
	switch l.Verdict {
	case New:
		before = "–"
	case Gone:
		after = "–"
	}
	return before, after
}

// sign does not depend on colours.
func (l Line) sign() string {
	switch {
	case l.Accepted:
		return "△ accepted"
	case l.Verdict == Worse:
		return "▲ **worse**"
	case l.Verdict == Gone:
		return "▲ **gone**"
	case l.Verdict == Better:
		return "▼ better"
	case l.Verdict == New:
		return "+ new"
	case l.Verdict == Unjudged:
		return "? not judged"
	}
	return "= unchanged"
}

// unchanged is the one line for all that is.
func (r *Report) unchanged(t Total) string {
	if r.Identical {
		return "No code of Weir's commands differs, so nothing was measured twice. " + r.held(t)
	}
	s := plural(t.Same, "figure", "figures") + " unchanged"
	if t.Unjudged > 0 {
		s += fmt.Sprintf(", %d not judged for want of samples", t.Unjudged)
	}
	return s + ". " + r.held(t)
}

func (r *Report) held(t Total) string {
	if t.RunsOfHead == 0 {
		return "No scenario was run."
	}
	return fmt.Sprintf("%d of %s held.", t.RunsOfHeadThatHold, plural(t.RunsOfHead, "scenario", "scenarios"))
}

// why a run did not pass, and how many of its scenario did not.
func (r Run) why() string {
	if r.of > 1 {
		return fmt.Sprintf("%s (%d of %d runs)", r.reason(), r.failed, r.of)
	}
	return r.reason()
}

func (r Run) reason() string {
	switch {
	case r.First != nil:
		return fmt.Sprintf("%s of a watch's promises, first at %.2f s: %s, %s: %s",
			plural(r.Violations, "violation", "violations"), r.First.Seconds, r.First.Where, r.First.Rule, r.First.Detail)
	case r.Error != "":
		return "ended early: " + r.Error
	case len(r.Failed) > 0:
		return strings.Join(r.Failed, "; ")
	}
	return "did not pass"
}

// repeats are commands, each once with what it measures, the worst line's first.
func (r *Report) repeats(t Total) (all []string) {
	of := map[string][]string{}
	add := func(c, what string) {
		if c = strings.ReplaceAll(c, "\n", " "); c == "" {
			return
		}
		if of[c] == nil {
			all = append(all, c)
		}
		if !slices.Contains(of[c], what) {
			of[c] = append(of[c], what)
		}
	}
	for _, run := range slices.Concat(t.Broken, t.AlsoBase) {
		add(run.Repeat, run.Scenario)
	}
	for _, l := range r.Lines {
		if l.Verdict != Same {
			add(l.Repeat, l.Subject)
		}
	}
	add(r.Command, "all")
	for i, c := range all {
		all[i] = c + "  # " + strings.Join(of[c], ", ")
	}
	return all
}

// ground says where and what.
func (r *Report) ground() string {
	s := fmt.Sprintf("Base %s", code(r.Base.name()))
	if r.Base.Subject != "" {
		s += " (" + cell(svg.Shorten(r.Base.Subject, widestSubject)) + ")"
	}
	s += ", head " + code(r.Head.name())
	if r.Head.Subject != "" {
		s += " (" + cell(svg.Shorten(r.Head.Subject, widestSubject)) + ")"
	}
	if r.Head.Changed {
		s += " with changes that are not committed"
	}
	s += fmt.Sprintf(". %s. %s, %.0f s", cell(r.Machine), r.Began.UTC().Format("2006-01-02 15:04"), r.Seconds)
	if n := r.noise(); n > 0 {
		s += fmt.Sprintf(". Noise of times here, base against base: ±%.1f %%", 100*n)
	}
	return s + "."
}

// noise is the largest of all times.
func (r *Report) noise() (most float64) {
	for _, l := range r.Lines {
		if l.Kind == Time && !math.IsNaN(l.Noise) {
			most = max(most, l.Noise)
		}
	}
	return most
}

// cell makes text from outside safe in a table and out of HTML.
func cell(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	const widest = 240
	if r := []rune(s); len(r) > widest {
		s = string(r[:widest-1]) + "…"
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "`", "'", "*", `\*`, "_", `\_`, "[", `\[`).Replace(s)
}

func code(s string) string {
	return "`" + strings.NewReplacer("`", "'", "|", "/", "\n", " ").Replace(s) + "`"
}
