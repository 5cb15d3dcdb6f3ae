package bench

import (
	"cmp"
	"fmt"
	"math"
	"strings"
)

// notable is from where on two medians are marked.
const notable = 0.1

// Compare lays two reports side by side, as Markdown: a row for each figure that one of them has, part by part. It says
// nothing of chance: benchstat does, of bench.txt.
func Compare(a, b Report) string {
	var out strings.Builder
	out.WriteString("# Benchmarks: two runs side by side\n\n")
	for _, x := range []struct {
		name string
		r    Report
	}{{"A", a}, {"B", b}} {
		fmt.Fprintf(&out, "- **%s**: revision %s, %s, %s\n", x.name, cell(cmp.Or(x.r.Revision, "unknown")),
			x.r.Began.Format("2006-01-02"), cell(x.r.Machine))
	}
	for _, name := range joined(a.names(), b.names()) {
		was, is := a.part(name), b.part(name)
		fmt.Fprintf(&out, "\n## %s\n\n", cell(name))
		if was.Name != "" && is.Name != "" && was.Config != is.Config {
			fmt.Fprintf(&out, "Measured with other flags: A %s; B %s.\n\n", cell(was.Config), cell(is.Config))
		}
		out.WriteString("| figure | unit | A | B | B ÷ A | target |\n| --- | --- | ---: | ---: | ---: | --- |\n")
		for _, figure := range joined(was.names(), is.names()) {
			out.WriteString(row(was.figure(figure), is.figure(figure)))
		}
	}
	fmt.Fprintf(&out, "\nMedians of all rounds. (!): more than %.0f %% apart.\n", 100*notable)
	return out.String()
}

// row is that of one figure; nil: a report does not have it.
func row(a, b *Figure) string {
	of := cmp.Or(b, a)
	quotient, target := absent, absent
	if a != nil && b != nil {
		quotient = times(a.Got(), b.Got())
	}
	if of.Limit != nil {
		target = of.Limit.String()
		if !of.Met() {
			target += ", **missed**"
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", cell(of.Name), cell(of.Unit), a.median(), b.median(), quotient,
		target)
}

// absent stands where a report has nothing.
const absent = "–"

func (f *Figure) median() string {
	if f == nil || len(f.Samples) == 0 {
		return absent
	}
	return fmt.Sprintf("%.3g", f.Got())
}

// times is b ÷ a, with a mark if they are notably apart.
func times(a, b float64) string {
	v := b / a
	switch {
	case a == b:
		v = 1
	case math.IsNaN(v):
		return absent
	case math.IsInf(v, 0):
		return "(!) " + absent
	}
	text := fmt.Sprintf("%.3f", v)
	if math.Abs(v-1) > notable {
		return "(!) " + text
	}
	return text
}

// cell is text that a table of Markdown takes: reports come from disk.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

// joined are the names of the first, and then those of the second that the first does not have.
func joined(a, b []string) (all []string) {
	seen := map[string]bool{}
	for _, name := range append(append([]string{}, a...), b...) {
		if !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
	}
	return all
}

func (r *Report) names() (names []string) {
	for _, p := range r.Parts {
		names = append(names, p.Name)
	}
	return names
}

// part is the one of a name, or one with nothing in it.
func (r *Report) part(name string) (none Measured) {
	for _, p := range r.Parts {
		if p.Name == name {
			return p
		}
	}
	return none
}

func (m Measured) names() (names []string) {
	for _, f := range m.Figures {
		names = append(names, f.Name)
	}
	return names
}

func (m Measured) figure(name string) *Figure {
	for i := range m.Figures {
		if m.Figures[i].Name == name {
			return &m.Figures[i]
		}
	}
	return nil
}
