package bench

import (
	"fmt"
	"strings"
)

// Markdown renders lines as a table, verdict first.
func Markdown(lines []Line, machine string) string {
	var b strings.Builder
	met, judged := 0, 0
	for _, l := range lines {
		if l.Target == 0 {
			continue
		}
		judged++
		if l.Met() {
			met++
		}
	}
	fmt.Fprintf(&b, "# Benchmarks\n\n%d of %d figures within their target. %s. Repeat: `make bench`.\n\n", met, judged, machine)
	b.WriteString("| figure | got | at most | met | detail |\n| --- | ---: | ---: | --- | --- |\n")
	for _, l := range lines {
		limit, verdict := fmt.Sprintf("%.3g", l.Target), "yes"
		switch {
		case l.Target == 0:
			limit, verdict = "–", "–"
		case !l.Met():
			verdict = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %.3g %s | %s | %s | %s |\n", l.Name, l.Got, l.Unit, limit, verdict, l.Detail)
	}
	return b.String()
}
