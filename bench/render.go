package bench

import (
	"fmt"
	"strings"
)

// Markdown renders lines as a table, verdict first.
func Markdown(lines []Line, machine string) string {
	var b strings.Builder
	met := 0
	for _, l := range lines {
		if l.Met() {
			met++
		}
	}
	fmt.Fprintf(&b, "# Benchmarks\n\n%d of %d figures within their target. %s. Repeat: `make bench`.\n\n", met, len(lines), machine)
	b.WriteString("| figure | got | at most | met | detail |\n| --- | ---: | ---: | --- | --- |\n")
	for _, l := range lines {
		verdict := "yes"
		if !l.Met() {
			verdict = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %.3g %s | %.3g | %s | %s |\n", l.Name, l.Got, l.Unit, l.Target, verdict, l.Detail)
	}
	return b.String()
}
