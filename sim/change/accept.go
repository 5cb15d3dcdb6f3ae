package change

import (
	"regexp"
	"strings"
)

var trailer = regexp.MustCompile(`(?i)^perf-ok:\s*(.*)$`)

// ReadAccepted finds the trailers "Perf-OK: reason" in messages of commits, by revision. One without a reason, or above
// the last paragraph, accepts nothing: problem says so.
func ReadAccepted(revision, message string) (accepted []Accepted, problem string) {
	paragraphs := strings.Split(strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n")), "\n\n")
	for i, paragraph := range paragraphs {
		for _, line := range strings.Split(paragraph, "\n") {
			m := trailer.FindStringSubmatch(strings.TrimSpace(line))
			switch {
			case m == nil:
			case i < len(paragraphs)-1:
				problem = "Perf-OK of " + revision + " does not stand in the last paragraph of its message, so it accepts nothing"
			case m[1] == "":
				problem = "Perf-OK of " + revision + " has no reason, so it accepts nothing"
			default:
				accepted = append(accepted, Accepted{revision, m[1]})
			}
		}
	}
	return accepted, problem
}
