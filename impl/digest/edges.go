package digest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-edge/weir/impl/contract"
)

// Bounds of the edges in a digest.
const (
	MaxEdges = 150 // bytes
	maxNamed = 8   // edges by name
	maxPeer  = 40  // characters
	maxEdges = 9999
)

// Way is between which parts an edge leads, and in which direction: a letter on the wire.
type Way string

// The ways.
const (
	ToCloud         Way = "u" // no hub tells it: who cannot reach the cloud tells nothing
	ToCoordinator   Way = "c"
	ToHub           Way = "h"
	FromCoordinator Way = "i" // what a coordinator, or a leader hub, found when it called this hub
)

// ways says for people between which parts a way leads.
var ways = map[Way]struct{ from, to string }{
	ToCloud:         {"hub", "cloud"},
	ToCoordinator:   {"hub", "coordinator"},
	ToHub:           {"hub", "hub"},
	FromCoordinator: {"coordinator", "hub"},
}

// Ways are those that this version knows, from the cloud on.
func Ways() []Way { return []Way{ToCloud, ToCoordinator, ToHub, FromCoordinator} }

// String is for people. One of a later version is its letter.
func (w Way) String() string {
	if is, ok := ways[w]; ok {
		return is.from + " -> " + is.to
	}
	return string(w)
}

// WayOf is what String gave.
func WayOf(text string) Way {
	for _, w := range Ways() {
		if w.String() == text {
			return w
		}
	}
	return Way(text)
}

// Edge is a way that fails, as a hub found it.
type Edge struct {
	Way Way
	// Peer is the other end: the node of a hub, or the host of a coordinator. It may be cut off behind maxPeer characters.
	Peer  string
	Port  int32 // that is called
	Cause string
}

// Says tells for people what fails, of the hub of a node.
func (e Edge) Says(node string) string {
	from, to := node, e.Peer
	if e.Way == FromCoordinator {
		from, to = e.Peer, node
	}
	at := ""
	if e.Port != 0 {
		at = fmt.Sprintf(", port %d", e.Port)
	}
	return fmt.Sprintf("%s: %s to %s%s: %s", e.Way, from, to, at, Likely(e.Cause))
}

// text is one word.
func (e Edge) text() string {
	return strings.Join([]string{string(e.Way), Peer(e.Peer), fmt.Sprint(min(max(e.Port, 1), 65535)), cause(e.Cause)}, "/")
}

// Peer is the other end as a part of a word: it may be shorter than the name of a node.
func Peer(name string) string {
	w := strings.Map(func(r rune) rune {
		if plain(r) || r == ':' {
			return r
		}
		return -1
	}, name)
	return cmp.Or(w[:min(len(w), maxPeer)], none)
}

// Edges are those that fail, as a digest has them: how many they are, how many of them are named, and these. "": none
// fails.
type Edges string

// EdgesOf names as many edges as MaxEdges lets it. It is the same whatever their order.
func EdgesOf(all []Edge) Edges {
	if len(all) == 0 {
		return ""
	}
	words := make([]string, 0, len(all))
	for _, e := range all {
		words = append(words, e.text())
	}
	slices.Sort(words)
	words = slices.Compact(words)
	count, named, length := min(len(words), maxEdges), 0, len("9999/8")
	for _, w := range words[:min(count, maxNamed)] {
		if length += 1 + len(w); length > MaxEdges {
			break
		}
		named++
	}
	return Edges(strings.Join(append([]string{fmt.Sprintf("%d/%d", count, named)}, words[:named]...), " "))
}

// Restored are edges of which not all are named.
func Restored(count int, named []Edge) Edges {
	is := EdgesOf(named)
	_, rest, _ := strings.Cut(string(is), "/")
	if is == "" || count <= len(named) {
		return is
	}
	return Edges(fmt.Sprintf("%d/%s", min(count, maxEdges), rest))
}

// List is how many fail, and those that are named.
func (e Edges) List() (count int, named []Edge) {
	if e == "" {
		return 0, nil
	}
	count, named, _, err := edges(strings.Split(string(e), " "))
	if err != nil {
		return 0, nil
	}
	return count, named
}

// edges reads them from the first of some words. used is how many words they are.
func edges(words []string) (count int, all []Edge, used int, err error) {
	fail := func(what, text string) (int, []Edge, int, error) {
		return 0, nil, 0, fmt.Errorf("%s: %s %.80q, want edges", contract.DigestAnnotation, what, text)
	}
	left, right, _ := strings.Cut(words[0], "/")
	count, err = strconv.Atoi(left)
	named, err2 := strconv.Atoi(right)
	if err != nil || err2 != nil || count < 1 || count > maxEdges || named < 1 || named > min(count, maxNamed) ||
		named > len(words)-1 || words[0] != fmt.Sprintf("%d/%d", count, named) {
		return fail("number of edges", words[0])
	}
	length := len(words[0])
	for _, w := range words[1 : 1+named] {
		part := strings.Split(w, "/")
		if length += 1 + len(w); len(part) != 4 || length > MaxEdges {
			return fail("edge", w)
		}
		port, err := strconv.ParseUint(part[2], 10, 16)
		e := Edge{Way(part[0]), part[1], int32(port), part[3]}
		if err != nil || port < 1 || len(part[0]) != 1 || !plain(rune(part[0][0])) || e.text() != w {
			return fail("edge", w)
		}
		all = append(all, e)
	}
	return count, all, 1 + named, nil
}
