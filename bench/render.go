package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Write puts result.json and summary.md into a folder, made if need be, and returns the summary.
func Write(dir string, lines []Line) (summary string, err error) {
	data, err := json.MarshalIndent(lines, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "result.json"), append(data, '\n'), 0o644); err != nil {
		return "", err
	}
	summary = Markdown(lines, fmt.Sprintf("%s/%s, %d CPUs, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()))
	return summary, os.WriteFile(filepath.Join(dir, "summary.md"), []byte(summary), 0o644)
}

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
