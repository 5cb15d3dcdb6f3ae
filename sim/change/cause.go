package change

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/weir-edge/weir/sim/report"
)

// cause is what probably made some lines worse, or better, and broke promises: the telling line first. One without
// lines is a promise alone.
type cause struct {
	lines  []Line
	broken []Run
}

// alike is by how much of the larger one amounts of bytes differ that have one cause.
const alike = 0.25

// causes puts together what has one cause, as far as the figures tell, the worst first:
//
//   - figures of one subject, and memory of one kind of process;
//   - bytes of class pool that grew by amounts that are alike;
//   - ratios of scenarios, and broken promises about bytes, with the bytes of the card, if one cause alone made these
//     more;
//   - broken promises with the figures that they are about, and runs that broke the same promises.
func (r *Report) causes(t Total) (all []cause) {
	var ratios []Line
	join := func(l Line, also func(cause) bool) {
		i := slices.IndexFunc(all, func(c cause) bool {
			return c.lines[0].Verdict == l.Verdict && slices.ContainsFunc(c.lines, l.alike)
		})
		if i < 0 {
			i = only(all, func(c cause) bool { return c.lines[0].Verdict == l.Verdict && also(c) })
		}
		if i < 0 {
			i, all = len(all), append(all, cause{})
		}
		all[i].lines = append(all[i].lines, l)
	}
	for _, l := range r.Lines {
		switch {
		case !l.Verdict.loses() && l.Verdict != Better:
		case l.Unit == "ratio":
			ratios = append(ratios, l)
		default:
			join(l, func(cause) bool { return false })
		}
	}
	// The ratio of class pool says which bytes these were. That of all bytes goes with it.
	slices.SortStableFunc(ratios, func(a, b Line) int { return strings.Compare(a.Name, b.Name) })
	for _, l := range ratios {
		join(l, func(c cause) bool { return c.costs(strings.HasPrefix(l.Name, "pool_")) })
	}
	var promises []cause
	for _, run := range t.Broken {
		i := slices.IndexFunc(all, func(c cause) bool { return c.breaks(run) })
		if i < 0 && run.ofBytes() {
			i = only(all, func(c cause) bool { return c.lines[0].Verdict.loses() && c.costs(true) })
		}
		if i >= 0 {
			all[i].broken = append(all[i].broken, run)
			continue
		}
		i = slices.IndexFunc(promises, func(c cause) bool { return slices.Equal(c.broken[0].broke(), run.broke()) })
		if i < 0 {
			i, promises = len(promises), append(promises, cause{})
		}
		promises[i].broken = append(promises[i].broken, run)
	}
	all = append(promises, all...)
	slices.SortStableFunc(all, func(a, b cause) int { return a.rank() - b.rank() })
	return all
}

// only is the index of the one cause that is meant, or -1.
func only(all []cause, meant func(cause) bool) int {
	i := slices.IndexFunc(all, meant)
	if i >= 0 && slices.ContainsFunc(all[i+1:], meant) {
		return -1
	}
	return i
}

// rank is 0 of what breaks a promise, and the less the worse.
func (c cause) rank() int {
	switch {
	case len(c.broken) > 0:
		return 0
	case c.lines[0].Verdict.loses():
		return 1
	}
	return 2
}

// costs reports whether a cause changes bytes on the link, of class pool.
func (c cause) costs(pool bool) bool {
	return slices.ContainsFunc(c.lines, func(l Line) bool {
		return l.Kind == Bytes && l.Unit == "B" && (!pool || l.ofPool())
	})
}

func (l Line) ofPool() bool { return l.Kind == Bytes && strings.Contains(l.Name, "class pool") }

// about is what lines of one cause have in common.
func (l Line) about() string {
	if l.Kind != Memory {
		return l.Subject
	}
	for _, process := range []string{"coordinator", "hub"} {
		if strings.Contains(l.Name, process) {
			return "memory of a " + process
		}
	}
	return "memory"
}

// alike reports whether two lines of one verdict have one cause by themselves.
func (l Line) alike(o Line) bool {
	if l.about() == o.about() {
		return true
	}
	a, b := math.Abs(l.After-l.Before), math.Abs(o.After-o.Before)
	return l.ofPool() && o.ofPool() && math.Abs(a-b) <= alike*max(a, b)
}

// breaks reports whether figures of a cause are what all promises are about that a run broke.
func (c cause) breaks(run Run) bool {
	return c.lines[0].Verdict.loses() && !slices.ContainsFunc(run.broke(), func(promise string) bool {
		return !slices.ContainsFunc(c.lines, func(l Line) bool { return l.Subject == run.Scenario && l.Name == promise })
	})
}

// ofBytes reports whether a run broke promises about bytes, and no others.
func (r Run) ofBytes() bool {
	return !slices.ContainsFunc(r.broke(), func(promise string) bool { return !strings.Contains(promise, "bytes") })
}

// sign of a cause: a promise weighs more than a figure.
func (c cause) sign() string {
	if len(c.broken) > 0 {
		return "✖"
	}
	sign, _, _ := strings.Cut(c.lines[0].sign(), " ")
	return sign
}

// says is the cause and its effect in one sentence.
func (c cause) says() string {
	if len(c.lines) == 0 {
		s := c.broken[0].Scenario + ": " + c.broken[0].why()
		if more := len(c.broken) - 1; more > 0 {
			s += ", and so " + plural(more, "more scenario", "more scenarios")
		}
		return s
	}
	first := c.lines[0]
	s, _ := first.Says()
	if first.Kind != Count {
		return s
	}
	if first.Before != 0 && first.Verdict != Gone {
		s += fmt.Sprintf(", %s → %s", Format(first.Before, first.Unit), Format(first.After, first.Unit))
	}
	for _, l := range c.lines {
		if l.Subject == first.Subject && l.Kind == Bytes && l.Unit == "B" {
			sign := "+"
			if l.After < l.Before {
				sign = "−"
			}
			return s + ": " + sign + l.amount() + " each"
		}
	}
	return s
}

// saying is how a figure is said. $1 is of the pattern, {d} is by how much it is more or less.
type saying struct {
	of         *regexp.Regexp
	more, less string
}

// sayings are for figures by their keys; the first that fits counts.
func sayings() []saying {
	say := func(pattern, more, less string) saying {
		return saying{regexp.MustCompile("^" + pattern + "$"), more, less}
	}
	return []saying{
		say(`leader change: lists of (.+) by hubs at kube-apiserver`, "A leader change lists $1 again",
			"A leader change lists $1 less often"),
		say(`leader change: lists at the coordinator`, "A leader change lists at the coordinator again",
			"A leader change lists less often at the coordinator"),
		say(`leader change: (watches|access reviews) by hubs at kube-apiserver`,
			"A leader change asks kube-apiserver for more $1", "A leader change asks kube-apiserver for fewer $1"),
		say(`leader change: bytes of class pool`, "A leader change costs {d} more", "A leader change costs {d} less"),
		say(`leader change: until another hub leads`, "Another hub leads {d} later", "Another hub leads {d} sooner"),
		say(`start: until all caches are ready, empty disks`, "A pool that starts has its caches {d} later",
			"A pool that starts has its caches {d} sooner"),
		say(`start: bytes of class pool until then`, "A pool that starts reads {d} more",
			"A pool that starts reads {d} less"),
		say(`changes: bytes of class pool for (\d+) changes`, "$1 changes cost {d} more", "$1 changes cost {d} less"),
		say(`heartbeat: .+`, "A heartbeat costs {d} more", "A heartbeat costs {d} less"),
		say(`get: time of a get (.+)`, "A get $1 takes {d} longer", "A get $1 takes {d} less"),
		say(`get: CPU of the hub for \d+ gets (.+)`, "A get $1 takes {d} more CPU", "A get $1 takes {d} less CPU"),
		say(`grace: new connections .+`, "A short loss of the coordinator opens more connections",
			"A short loss of the coordinator opens fewer connections"),
		say(`grace: from its loss until all caches are fresh`, "Caches are fresh {d} later after a loss of the coordinator",
			"Caches are fresh {d} sooner after a loss of the coordinator"),
		say(`memory: RssAnon of a (hub|coordinator)`, "A $1 takes {d} more memory", "A $1 takes {d} less memory"),
		say(`(.+): (hub|coordinator)_rss_anon_bytes(?:_max)?`, "A $2 takes {d} more memory in $1",
			"A $2 takes {d} less memory in $1"),
		say(`(.+): pool_bytes_ratio`, "$1 reads {d} more of class pool", "$1 reads {d} less of class pool"),
		say(`(.+): total_bytes_ratio`, "$1 has {d} more on the link", "$1 has {d} less on the link"),
		say(`(.+): client_relists`, "Clients list again in $1", "Clients list less often in $1"),
		say(`(.+): late_markers`, "Changes are late in $1", "Changes are late less often in $1"),
	}
}

// Says is a line in words, and whether there are words for its figure: else it is the figure's name, and by how much it
// changed.
func (l Line) Says() (sentence string, known bool) {
	if l.Verdict == Gone {
		return l.Key() + " is not measured any more", true
	}
	for _, s := range sayings() {
		at := s.of.FindStringSubmatchIndex(l.Key())
		if at == nil {
			continue
		}
		text := s.more
		if l.After < l.Before {
			text = s.less
		}
		return strings.ReplaceAll(string(s.of.ExpandString(nil, text, l.Key(), at)), "{d}", l.amount()), true
	}
	return l.Key() + ": " + l.Delta(), false
}

// amount is by how much a figure is more or less, for a sentence: three digits of bytes, and the share of what has no
// amount of its own.
func (l Line) amount() string {
	if l.Unit == "B" {
		return report.UnitBytes.Format(math.Abs(l.After - l.Before))
	}
	return strings.TrimLeft(l.Delta(), "+−")
}

// lead is the one sentence that a reader is told first.
func (r *Report) lead(t Total, causes []cause) string {
	worst := ""
	if len(causes) > 0 {
		worst = causes[0].sign() + " " + causes[0].says()
	}
	switch {
	case t.Unmeasured:
		return "? Nothing was measured"
	case r.Identical && worst == "":
		return "= No code of Weir's commands differs"
	case len(r.Unfinished) > 0 && !slices.ContainsFunc(causes, func(c cause) bool { return c.sign() != "▼" }):
		return "? Not all was measured: " + r.Unfinished[0]
	case worst != "":
		return worst
	case t.NewFigures > 0:
		return "+ " + plural(t.NewFigures, "new figure", "new figures") + ", and nothing is better or worse"
	}
	return "= Nothing is better or worse"
}
