package scenario

import (
	"fmt"

	"github.com/weir-edge/weir/sim/link"
)

// Kind is a fault that is one type in one file. It says what it may be done to and which fields it takes, reads and
// writes them, begins, heals and says what a report says. Reader, storm and runner know it by this interface alone.
// What it is done to are interfaces, too, so it needs no laboratory. Actions without a Kind are spread over fault.go,
// parsefault.go and deed.go of sim/runner.
type Kind interface {
	// rule says what it may be done to, and names all its fields.
	rule() actionRule
	// read reads one of the fields that are its own.
	read(field string, v value)
	// check says what is wrong with its fields together.
	check(o object)
	// written are its own fields as a file has them.
	written() map[string]string

	// Stops reports whether the link is as good as cut while it lasts.
	Stops() bool
	// Begin starts it; heal ends it.
	Begin(at Aim) (heal func() error, err error)
	// String is what a report says of it, beside action and target.
	fmt.Stringer
}

// Aim is what a Kind is done to: links of a pool, and whose connections.
type Aim struct {
	Lines     []Line
	Nodes     []string // "": all of the pool
	Direction link.Direction
}

// Line is a link as a Kind sees it. It is a *link.Pool in a run.
type Line interface {
	AddToxic(dir link.Direction, node, kind string, attributes map[string]int64) (remove func(), err error)
}

// kinds are all actions that are types.
func kinds() (all []Kind) {
	for _, t := range toxicTypes() {
		all = append(all, &Toxic{Type: t.action, Attributes: map[string]int64{}})
	}
	return all
}

// newKind is one without its fields, nil for an action that has none.
func newKind(a Action) Kind {
	for _, k := range kinds() {
		if k.rule().action == a {
			return k
		}
	}
	return nil
}
