package heartbeat

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// ChainLength is how many periods a chain lasts.
const ChainLength = 4096

// chainReserve is how many periods before its end a chain has a successor: with one each ten seconds, more than an
// hour.
const chainReserve = 512

// Link proves that a hub has heard its kubelet in a period.
type Link [16]byte

// MarshalText implements encoding.TextMarshaler.
func (l Link) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, l[:]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Link) UnmarshalText(text []byte) (err error) {
	*l, err = parseSum(string(text))
	return err
}

// after is the link of the period before.
func (l Link) after(node string, steps uint64) Link {
	text := append([]byte("weir roll "+node+"\n"), l[:]...)
	at := len(text) - len(l)
	for range steps {
		sum := sha256.Sum256(text)
		copy(text[at:], sum[:])
	}
	copy(l[:], text[at:])
	return l
}

// Chain makes the links of a node. The zero Chain makes none.
type Chain struct {
	node   string
	seed   Link
	anchor Anchor
}

// NewChain makes the chain of a node from a random seed. It begins after a period.
func NewChain(node string, seed [16]byte, begin uint64) Chain {
	return Chain{node, seed, Anchor{Begin: begin, Link: Link(seed).after(node, ChainLength)}}
}

// Anchor is what others judge its links by.
func (c Chain) Anchor() Anchor { return c.anchor }

// Link is that of a period; false: the chain has none.
func (c Chain) Link(period uint64) (Link, bool) {
	if c.node == "" || period <= c.anchor.Begin || period-c.anchor.Begin > ChainLength {
		return Link{}, false
	}
	return c.seed.after(c.node, ChainLength-(period-c.anchor.Begin)), true
}

// Ends reports whether there has to be another chain, since this one has no links, or few more, after a period.
func (c Chain) Ends(period uint64) bool {
	return c.node == "" || period < c.anchor.Begin || period-c.anchor.Begin > ChainLength-chainReserve
}

// Anchor is where a chain begins.
type Anchor struct {
	Begin uint64 // the period before the first link
	Link  Link
}

// String is the anchor as a Lease carries it.
func (a Anchor) String() string {
	return strconv.FormatUint(a.Begin, 36) + " " + base64.RawURLEncoding.EncodeToString(a.Link[:])
}

// ParseAnchor reads one.
func ParseAnchor(s string) (a Anchor, err error) {
	begin, link, _ := strings.Cut(s, " ")
	if a.Begin, err = parsePeriod(begin); err != nil {
		return Anchor{}, fmt.Errorf("anchor %.80q: begin: %w", s, err)
	}
	if a.Link, err = parseSum(link); err != nil {
		return Anchor{}, fmt.Errorf("anchor %.80q: link: %w", s, err)
	}
	return a, nil
}

// Proves reports whether a link is that of a period in the chain of a node.
func (a Anchor) Proves(node string, period uint64, l Link) bool {
	return period > a.Begin && period-a.Begin <= ChainLength && l.after(node, period-a.Begin) == a.Link
}

func parsePeriod(s string) (uint64, error) {
	p, err := strconv.ParseUint(s, 36, 64)
	if err != nil || strconv.FormatUint(p, 36) != s {
		return 0, fmt.Errorf("%.20q: want a number of base 36 below 2^64", s)
	}
	return p, nil
}

func parseSum(s string) (l Link, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(raw) != len(l) {
		return l, fmt.Errorf("%.30q: want %d bytes as base64url", s, len(l))
	}
	return Link(raw), nil
}
