package mutant

import (
	"bufio"
	"encoding/json"
	"io"
	"regexp"
	"strings"
)

// said is what go test -json told.
type said struct {
	passed   []string // tests
	failed   []string
	built    bool     // nothing failed to compile
	compiler []string // what the compiler said
	late     bool     // the test binary ended itself at its limit
	by       string   // the first test that failed
	at       string   // where, and with which words
}

// event is a line of go test -json: of test2json, or of the build.
type event struct {
	Action, Test, Output string
}

var (
	failLine = regexp.MustCompile(`^\s*--- FAIL: (\S+)`)
	saidLine = regexp.MustCompile(`^\s*(\w+\.go:\d+: .*\S)`)
)

const mostLine = 1 << 20

// listen reads until the end.
func listen(r io.Reader) said {
	s := said{built: true}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, mostLine)
	at := map[string]string{} // the first words of each test
	var last, broke string
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			s.note(lines.Text()) // the go command itself
			continue
		}
		switch e.Action {
		case "build-fail":
			s.built = false
		case "build-output":
			s.note(e.Output)
		case "pass":
			if e.Test != "" {
				s.passed = append(s.passed, e.Test)
			}
		case "fail":
			if e.Test != "" {
				s.failed = append(s.failed, e.Test)
			}
		case "output":
			line := strings.TrimRight(e.Output, "\n")
			if strings.TrimSpace(line) != "" {
				last = line
			}
			switch m := failLine.FindStringSubmatch(line); {
			case m != nil && s.by == "":
				s.by = m[1]
			case strings.HasPrefix(line, "panic: test timed out"):
				s.late = true
			case broke == "" && (strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
				strings.HasPrefix(line, "WARNING: DATA RACE")):
				broke = line
				at[e.Test] = line
				if s.by == "" {
					s.by = e.Test
				}
			case at[e.Test] == "" && saidLine.MatchString(line):
				at[e.Test] = saidLine.FindStringSubmatch(line)[1]
			}
		}
	}
	_, _ = io.Copy(io.Discard, r) // after a line too long to scan
	s.at = at[s.by]
	for up := s.by; s.at == "" && strings.Contains(up, "/"); {
		up = up[:strings.LastIndex(up, "/")]
		s.at = at[up]
	}
	if s.at == "" {
		s.at = last
	}
	return s
}

const mostNotes = 5

func (s *said) note(line string) {
	if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && len(s.compiler) < mostNotes {
		s.compiler = append(s.compiler, line)
	}
}
