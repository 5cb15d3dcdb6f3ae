package scenario

import (
	"fmt"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
)

// Mistake is one thing that is wrong in a scenario file.
type Mistake struct {
	File    string
	Line    int
	Field   string // as topology.pool.nodes
	Value   string // empty: there is none
	Allowed string // what is allowed, or what to do
}

func (m Mistake) usage() *cli.UsageError {
	field := m.Field
	if m.Line > 0 {
		field = fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Field)
	} else if m.File != "" {
		field = m.File + ": " + m.Field
	}
	return &cli.UsageError{Field: field, Value: m.Value, Allowed: m.Allowed}
}

// String is one line about the mistake.
func (m Mistake) String() string {
	u := m.usage()
	if m.Value == "" {
		return u.Field + ": " + u.Allowed
	}
	return u.Error()
}

// FileErrors are all that is wrong in some scenario files, in the order of their lines. As an error they are wrong
// usage: errors.As finds the first one as *cli.UsageError.
type FileErrors []Mistake

// Error has one line for each mistake.
func (m FileErrors) Error() string {
	lines := make([]string, 0, len(m))
	for _, one := range m {
		lines = append(lines, one.String())
	}
	return strings.Join(lines, "\n")
}

// As implements what errors.As asks for.
func (m FileErrors) As(target any) bool {
	u, ok := target.(**cli.UsageError)
	if ok && len(m) > 0 {
		*u = m[0].usage()
		return true
	}
	return false
}
