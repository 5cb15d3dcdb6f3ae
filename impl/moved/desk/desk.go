// Package desk shows the desk of a pool's moved pods over HTTP: hubs hand in statements of their own nodes, and read
// those of others. Package moved has what that means. A coordinator has a desk, and so has each leader hub. It is in
// memory: what is lost with it is handed in again a moment later. It believes nobody: the caller is made sure of, and
// hubs read signatures. It starts no goroutine.
//
//	POST  by a hub: an Ask, with the statement of its node or without; the answer is an Answer
//
// What came is numbered, so that nobody reads a thing twice.
package desk

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/moved"
)

// Bounds of what a desk takes and gives.
const (
	maxAsk    = 192 << 10 // bytes of a request: a statement and its chain
	maxAnswer = 512 << 10 // bytes of statements in an answer; the next one goes on
)

// Ask is what a hub brings.
type Ask struct {
	Desk      string        `json:"desk,omitempty"`      // that After is a number of
	After     uint64        `json:"after,omitempty"`     // what came up to here was read
	Statement *moved.Signed `json:"statement,omitempty"` // of the hub's node; nil: it has none
	Mute      bool          `json:"mute,omitempty"`      // nothing is to be read
}

// Answer is what a hub reads.
type Answer struct {
	Desk  string `json:"desk"`
	At    uint64 `json:"at"`              // Ask.After of the next request
	More  bool   `json:"more,omitempty"`  // there is more behind that already
	Whole bool   `json:"whole,omitempty"` // the whole statement of the hub's node is wanted: its contents are lost
	// Statements are those that came behind After. One that says that its contents are the same has no chain if that is
	// the one of the whole statement.
	Statements []moved.Signed `json:"statements,omitempty"`
}

// ErrForeign is of a statement of another node.
var ErrForeign = errors.New("a hub states what is of its own node")

// Desk is one that several may use.
type Desk struct {
	Clock clock.PassiveClock

	mu    sync.Mutex
	name  string
	stamp uint64
	of    map[string]*entry
}

// entry is what the hub of a node handed in.
type entry struct {
	whole, beat item
	number      uint64 // of the contents of whole
}

type item struct {
	stamp  uint64
	came   time.Time
	signed moved.Signed
}

// Exchange takes the statement of a node, and gives those of others.
func (d *Desk) Exchange(node string, a Ask) (out Answer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.name == "" {
		d.name = rand.Text()
	}
	if a.Statement != nil {
		if out.Whole, err = d.take(node, *a.Statement); err != nil {
			return Answer{}, err
		}
	}
	if out.Desk, out.At = d.name, a.After; a.Desk != d.name {
		out.At = 0
	}
	if !a.Mute {
		d.give(node, &out)
	}
	return out, nil
}

// Reset loses all, as a restart does.
func (d *Desk) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name, d.stamp, d.of = "", 0, nil
}

// take takes one. whole: it is about contents that are not here.
func (d *Desk) take(node string, s moved.Signed) (whole bool, err error) {
	st, err := s.Read()
	if err != nil {
		return false, err
	}
	if st.Node != node {
		return false, fmt.Errorf("statement of %.80q by the hub of %.80q: %w", st.Node, node, ErrForeign)
	}
	e := d.of[node]
	if st.Same && (e == nil || e.number != st.Number) {
		return true, nil
	}
	if e == nil {
		d.room()
		e = &entry{}
		d.of[node] = e
	}
	d.stamp++
	if st.Same {
		if slices.EqualFunc(s.Chain, e.whole.signed.Chain, slices.Equal) {
			s.Chain = nil
		}
		e.beat = item{d.stamp, d.Clock.Now(), s}
		return false, nil
	}
	*e = entry{whole: item{d.stamp, d.Clock.Now(), s}, number: st.Number}
	return false, nil
}

// room forgets the node that was silent for longest, if there are as many as there may be.
func (d *Desk) room() {
	if d.of == nil {
		d.of = map[string]*entry{}
	}
	if len(d.of) < moved.MaxNodes {
		return
	}
	oldest, at := "", d.stamp+1
	for node, e := range d.of {
		if last := max(e.whole.stamp, e.beat.stamp); last < at {
			oldest, at = node, last
		}
	}
	delete(d.of, oldest)
}

// give gives what came behind out.At, in that order.
func (d *Desk) give(node string, out *Answer) {
	var all []item
	for of, e := range d.of {
		heard := e.whole.came
		if e.beat.stamp > 0 {
			heard = e.beat.came
		}
		for _, i := range []item{e.whole, e.beat} {
			i.signed.Age = int64(d.Clock.Since(heard) / time.Second)
			if of != node && i.stamp > out.At {
				all = append(all, i)
			}
		}
	}
	slices.SortFunc(all, func(a, b item) int { return cmp.Compare(a.stamp, b.stamp) })
	size := 0
	for _, i := range all {
		size += len(i.signed.Text) + len(i.signed.Signature)*4/3 + 64
		for _, c := range i.signed.Chain {
			size += len(c)*4/3 + 8
		}
		if out.More = size > maxAnswer && len(out.Statements) > 0; out.More {
			return
		}
		out.Statements, out.At = append(out.Statements, i.signed), i.stamp
	}
	out.At = d.stamp
}

// Handler serves it. node is the node whose hub asks, "" if somebody else does.
func (d *Desk) Handler(node func(*http.Request) string) http.Handler {
	return exchange.Handler(node, "hubs state what is of their nodes, and nobody else", maxAsk, d.Exchange)
}
