package exchange

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

	"github.com/weir-edge/weir/impl/moved"
)

// Bounds of what Moved takes and gives.
const (
	maxMovedAsk    = 192 << 10 // bytes of a request: a statement and its chain
	maxMovedAnswer = 512 << 10 // bytes of statements in an answer; the next one goes on
)

// MovedAsk is what a hub brings.
type MovedAsk struct {
	Desk      string        `json:"desk,omitempty"`      // that After is a number of
	After     uint64        `json:"after,omitempty"`     // what came up to here was read
	Statement *moved.Signed `json:"statement,omitempty"` // of the hub's node; nil: it has none
	Mute      bool          `json:"mute,omitempty"`      // nothing is to be read
}

// MovedAnswer is what a hub reads.
type MovedAnswer struct {
	Desk  string `json:"desk"`
	At    uint64 `json:"at"`              // MovedAsk.After of the next request
	More  bool   `json:"more,omitempty"`  // there is more behind that already
	Whole bool   `json:"whole,omitempty"` // the whole statement of the hub's node is wanted: its contents are lost
	// Statements are those that came behind After. One that says that its contents are the same has no chain if that is
	// the one of the whole statement.
	Statements []moved.Signed `json:"statements,omitempty"`
}

// ErrForeign is of a statement of another node.
var ErrForeign = errors.New("a hub states what is of its own node")

// Moved is where hubs hand in what they say of moved pods, and read what others say. It is safe for concurrent use.
type Moved struct {
	Clock clock.PassiveClock

	mu    sync.Mutex
	name  string
	stamp uint64
	of    map[string]*movedEntry
}

// movedEntry is what the hub of a node handed in.
type movedEntry struct {
	whole, beat movedItem
	number      uint64 // of the contents of whole
}

type movedItem struct {
	stamp  uint64
	came   time.Time
	signed moved.Signed
}

// Exchange takes the statement of a node, and gives those of others.
func (d *Moved) Exchange(node string, a MovedAsk) (out MovedAnswer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.name == "" {
		d.name = rand.Text()
	}
	if a.Statement != nil {
		if out.Whole, err = d.take(node, *a.Statement); err != nil {
			return MovedAnswer{}, err
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
func (d *Moved) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name, d.stamp, d.of = "", 0, nil
}

// take takes one. whole: it is about contents that are not here.
func (d *Moved) take(node string, s moved.Signed) (whole bool, err error) {
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
		e = &movedEntry{}
		d.of[node] = e
	}
	d.stamp++
	if st.Same {
		if slices.EqualFunc(s.Chain, e.whole.signed.Chain, slices.Equal) {
			s.Chain = nil
		}
		e.beat = movedItem{d.stamp, d.Clock.Now(), s}
		return false, nil
	}
	*e = movedEntry{whole: movedItem{d.stamp, d.Clock.Now(), s}, number: st.Number}
	return false, nil
}

// room forgets the node that was silent for longest, if there are as many as there may be.
func (d *Moved) room() {
	if d.of == nil {
		d.of = map[string]*movedEntry{}
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
func (d *Moved) give(node string, out *MovedAnswer) {
	var all []movedItem
	for of, e := range d.of {
		heard := e.whole.came
		if e.beat.stamp > 0 {
			heard = e.beat.came
		}
		for _, i := range []movedItem{e.whole, e.beat} {
			i.signed.Age = int64(d.Clock.Since(heard) / time.Second)
			if of != node && i.stamp > out.At {
				all = append(all, i)
			}
		}
	}
	slices.SortFunc(all, func(a, b movedItem) int { return cmp.Compare(a.stamp, b.stamp) })
	size := 0
	for _, i := range all {
		size += len(i.signed.Text) + len(i.signed.Signature)*4/3 + 64
		for _, c := range i.signed.Chain {
			size += len(c)*4/3 + 8
		}
		if out.More = size > maxMovedAnswer && len(out.Statements) > 0; out.More {
			return
		}
		out.Statements, out.At = append(out.Statements, i.signed), i.stamp
	}
	out.At = d.stamp
}

// Handler serves it. node is the node whose hub asks, "" if somebody else does.
func (d *Moved) Handler(node func(*http.Request) string) http.Handler {
	return Handler(node, "hubs state what is of their nodes, and nobody else", maxMovedAsk, d.Exchange)
}
