package link

import (
	"strings"

	"github.com/Shopify/toxiproxy/v2/stream"
)

// Direction is a set of ways across the link. Counters and samples carry one, cuts and rates may be for both.
type Direction uint8

// The ways across a link.
const (
	Up   Direction = 1 << iota // from a node to the cloud
	Down                       // from the cloud to a node
	Both = Up | Down
)

func (d Direction) String() string {
	switch d {
	case Up:
		return "up"
	case Down:
		return "down"
	case Both:
		return "both"
	}
	return "none"
}

// MarshalText writes "up", "down" or "both".
func (d Direction) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// ParseDirection reads what String writes; an empty string means both.
func ParseDirection(s string) (Direction, bool) {
	switch strings.ToLower(s) {
	case "up":
		return Up, true
	case "down":
		return Down, true
	case "both", "":
		return Both, true
	}
	return 0, false
}

// index is the place of one way in arrays of two.
func (d Direction) index() int {
	if d == Up {
		return 0
	}
	return 1
}

func (d Direction) opposite() Direction { return Both &^ d }

func (d Direction) stream() stream.Direction {
	if d == Up {
		return stream.Upstream
	}
	return stream.Downstream
}
