package change

import (
	"regexp"
	"strings"
)

var trailer = regexp.MustCompile(`(?i)^perf-ok:\s*(.*)$`)

// ReadAccepted finds the trailers "Perf-OK: reason" in messages of commits, by revision. A trailer without a reason accepts nothing: problem says so.
func ReadAccepted(revision, message string) (accepted []Accepted, problem string) {
	paragraphs := strings.Split(strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n")), "\n\n")
	for _, line := range strings.Split(paragraphs[len(paragraphs)-1], "\n") {
		m := trailer.FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case m == nil:
		case strings.TrimSpace(m[1]) == "":
			problem = "Perf-OK of " + revision + " has no reason, so it accepts nothing"
		default:
			accepted = append(accepted, Accepted{revision, strings.TrimSpace(m[1])})
		}
	}
	return accepted, problem
}
