package relay

import (
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/mvcc"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	// MinWatch is kube-apiserver's --min-request-timeout: a watch without a timeout lives that long to twice as long, and
	// none here lives longer than that, since anyone who may watch is asked when it begins.
	MinWatch = 1800 * time.Second

	bookmarkEvery  = time.Minute     // bookmarkFrequency in storage/cacher
	bookmarkBefore = 2 * time.Second // before the timeout: nextBookmarkTime in storage/cacher
	// WatchBatch is how many events a Cursor takes from the ring at once. It may say a little more with them.
	WatchBatch = 64
)

// WatchOptions is what of a watch is wanted.
type WatchOptions struct {
	At
	Selector Selector
	// Initial begins with all objects as ADDED, and if there are bookmarks, one that ends them. Else the watch goes on
	// behind At.Version, and behind what the relay has reached if that is 0.
	Initial bool
	// Wait waits up to 3 s for a relay that is behind At.Version. Else a watch ahead of it is accepted and shows only what
	// is later (rule 2).
	Wait bool
	// Past has Initial begin with the objects as they were at the oldest version from which a watch can resume, and all
	// events since. A relay that begins so can serve whom this one can serve: its clients resume at the versions they have
	// seen.
	Past bool
	// Bookmarks come about once a minute and before the timeout; these prove nothing about the freshness of the relay.
	Bookmarks bool
	// Progress has every bookmark come as the relay gets it, where a batch begins, and a Testimony, so that the freshness
	// of a relay passes along a chain of relays: the reader is one.
	Progress bool
	// Calm is the least time between two Testimonies that come for nothing else: each has its price where bytes are dear.
	Calm time.Duration
	// Timeout ends the watch in order. 0: about MinWatch.
	Timeout time.Duration
}

// Wait is what a reader waits for that has read all there is: Changed, which may be nil, or a time.
type Wait struct {
	Changed <-chan struct{}
	Until   time.Time
}

// view is a state, and what the relay says of it.
type view struct {
	mvcc.View
	history History
	word    Testimony
	said    uint64
}

// log is what a cursor reads.
type log interface {
	// look tells what is behind a cursor, and appends the events.
	look(dst []*mvcc.Event, c *Cursor) sight
	// closed counts a watch that is ended because of its reader.
	closed(why string)
}

// sight is a log as it was at one moment, from a cursor.
type sight struct {
	events  []*mvcc.Event
	ok      bool // the log reaches back to the cursor
	over    bool // the watch is
	parting bool // the watch ends when its reader has seen all there is: see Relay.Retire
	wake    <-chan struct{}
	shown   uint64 // sequence number up to which watchers may see
	version uint64 // reached there
	reached uint64
	floor   uint64
	epoch   uint64
	history uint64
	said    uint64
	word    Testimony
}

// Cursor is a place in a watch, and what its reader has seen. It holds no queue and no lock, and need not be closed. It
// has one reader.
type Cursor struct {
	log     log
	clock   clock.PassiveClock
	o       WatchOptions
	history History    // in which it began
	initial view       // of which objects are left; without Objects: none
	from    string     // key of the next of them
	place   mvcc.Place // of the next event
	denials uint64
	after   uint64      // the reader has seen this version
	sent    uint64      // version of the last event given
	said    uint64      // when the relay last testified to the reader; 0: never
	saidAt  time.Time   // and by the clock; zero: never
	owes    bool        // it has since, and the reader is told when WatchOptions.Calm is over
	ahead   bool        // the reader has seen more than the relay: no bookmark can be vouched for
	inside  *mvcc.Batch // being given
	room    [WatchBatch]*mvcc.Event

	end        time.Time
	bookmarkAt time.Time
	beforeEnd  bool // the bookmark before the end is still to come
}

// newCursor is a cursor that has no place yet.
func newCursor(l log, clk clock.PassiveClock, o WatchOptions) *Cursor {
	if o.Timeout <= 0 {
		o.Timeout = time.Duration(float64(MinWatch) * (1 + rand.Float64()))
	}
	o.Timeout = min(o.Timeout, 2*MinWatch)
	now := clk.Now()
	return &Cursor{
		log: l, clock: clk, o: o, end: now.Add(o.Timeout), bookmarkAt: now.Add(bookmarkEvery),
		beforeEnd: o.Timeout > bookmarkBefore,
	}
}

// begin makes a cursor give the objects of a view first.
func (c *Cursor) begin(v view) {
	c.history, c.place, c.after = v.history, v.Place, v.Version
	c.initial, c.from = v, c.o.Selector.prefix
}

// History is that of the versions.
func (c *Cursor) History() History { return c.history }

// Place is the version that the reader has seen. initial: objects that the watch begins with are still to come. ahead:
// the relay has not reached the version.
func (c *Cursor) Place() (version uint64, initial, ahead bool) {
	return c.after, c.initial.Objects != nil, c.ahead
}

// Read appends what there is to dst, a part of it if it is much. If there is nothing, it tells what to wait for. An
// error ends the watch, behind the events that come with it: io.EOF in order, and all others are those that
// kube-apiserver tells by an ERROR event.
func (c *Cursor) Read(dst []Event) (events []Event, wait Wait, err error) {
	had := len(dst)
	if c.initial.Objects != nil {
		if dst = c.objects(dst); len(dst) > had {
			return dst, Wait{}, nil
		}
	}
	now := c.log.look(c.room[:0], c)
	defer clear(now.events) // what the ring drops should be collected
	switch {
	case now.over:
		return dst, Wait{}, io.EOF
	case now.epoch != c.place.Epoch:
		return dst, Wait{}, errTooOld(c.after, now.floor)
	case c.o.History != nil && now.history != c.o.History.Number: // it comes again, and is told
		c.log.closed("another history")
		return dst, Wait{}, io.EOF
	case !now.ok: // fell out of the ring: the client resumes, and gets 410 if that is too late
		c.log.closed("behind the ring")
		return dst, Wait{}, io.EOF
	}
	if c.o.Progress && c.o.Bookmarks && now.said != c.said {
		if at := c.clock.Now(); at.Sub(c.saidAt) >= c.o.Calm {
			c.said, c.saidAt, c.owes = now.said, at, false
			dst = append(dst, c.testify(now.word))
		} else {
			c.owes = true
		}
	}
	taken := now.events[:min(uint64(len(now.events)), max(now.shown, c.place.Seq)-c.place.Seq)]
	for _, ev := range taken {
		if dst, err = c.give(dst, ev, now.reached); err != nil {
			return dst, Wait{}, err
		}
		c.place.Seq++
	}
	if len(taken) == 0 {
		c.ahead = c.after > now.reached
		c.after = max(c.after, now.version)
	}
	switch {
	case len(dst) > had:
		return dst, Wait{}, nil
	case len(taken) > 0: // none of them was for this reader
		return c.Read(dst)
	case now.parting:
		if c.o.Bookmarks && !c.o.Progress {
			dst = c.bookmark(dst, wire.Event{Version: c.after})
		}
		return dst, Wait{}, io.EOF
	}
	return c.rest(dst, now.wake)
}

// rest is for a reader that has seen all there is: it may be time for a bookmark, or for the end.
func (c *Cursor) rest(dst []Event, wake <-chan struct{}) ([]Event, Wait, error) {
	now, until := c.clock.Now(), c.end
	if !now.Before(c.end) {
		return dst, Wait{}, io.EOF
	}
	if !c.o.Bookmarks || c.o.Progress { // a relay takes each for a sign of the source
		if due := c.saidAt.Add(c.o.Calm); c.owes && due.Before(until) {
			until = due
		}
		return dst, Wait{wake, until}, nil
	}
	last := c.end.Add(-bookmarkBefore)
	if c.beforeEnd && c.bookmarkAt.After(last) {
		c.bookmarkAt = last
	}
	if !now.Before(c.bookmarkAt) {
		c.beforeEnd = c.beforeEnd && !c.bookmarkAt.Equal(last)
		c.bookmarkAt = now.Add(bookmarkEvery)
		dst = c.bookmark(dst, wire.Event{Version: c.after})
	}
	if c.bookmarkAt.Before(until) {
		until = c.bookmarkAt
	}
	return dst, Wait{wake, until}, nil
}

// objects gives the next of the initial objects, and behind the last the bookmark that ends them.
func (c *Cursor) objects(dst []Event) []Event {
	had, more := len(dst), false
	c.initial.Objects.AscendGreaterOrEqual(&wire.Object{Key: c.from}, func(o *wire.Object) bool {
		switch {
		case !strings.HasPrefix(o.Key, c.o.Selector.prefix):
			return false
		case len(dst)-had == WatchBatch:
			c.from, more = o.Key, true
			return false
		case c.o.Selector.Matches(o):
			dst = append(dst, Event{Event: wire.Event{Type: wire.Added, Version: o.Version, Object: o}})
		}
		return true
	})
	if more {
		return dst
	}
	v := c.initial
	c.initial = view{}
	end := wire.Event{Version: v.Version, InitialEnd: true}
	if c.o.Progress {
		c.saidAt = c.clock.Now()
		c.said, end.Testimony = v.said, v.word.String(c.saidAt)
	}
	if c.o.Bookmarks {
		dst = c.bookmark(dst, end)
	}
	c.sent = v.Version
	return dst
}

// give gives one event as this watch sees it.
func (c *Cursor) give(dst []Event, ev *mvcc.Event, reached uint64) ([]Event, error) {
	ends := ev.Cur == nil && ev.Batch != nil && ev.Batch == c.inside // the last change may have had the same version
	if !ends && !ev.After(c.after) {
		return dst, nil
	}
	dst, err := c.enter(dst, ev.Batch, reached)
	if err != nil {
		return dst, err
	}
	c.after, c.ahead = ev.Version, false
	if ev.Cur == nil {
		if c.o.Bookmarks && (c.o.Progress || ev.Batch != nil) {
			dst = c.bookmark(dst, wire.Event{Version: ev.Version})
		}
		return dst, nil
	}
	typ, left := c.o.Selector.view(ev)
	if typ == "" {
		return dst, nil
	}
	o := ev.Cur
	if left { // the previous content under the new version
		if o, err = ev.Leaves(c.o.Selector.res.encoding); err != nil {
			return dst, err
		}
	}
	c.sent = ev.Version
	return append(dst, Event{Event: wire.Event{Type: typ, Version: ev.Version, Object: o}, of: ev, left: left}), nil
}

// enter is called where events are part of a batch. A client that saw more than the state that the batch starts from,
// at a source that was ahead, goes on if the batch admits it. Else it has not seen what the batch deletes, and would
// not: these deletions are stamped with the version that the batch starts from.
func (c *Cursor) enter(dst []Event, b *mvcc.Batch, reached uint64) ([]Event, error) {
	if b == nil || b == c.inside {
		return dst, nil
	}
	if !b.Admits(c.after) || b.Inside(c.after) && !c.o.Selector.fixed() {
		return dst, errTooOld(c.after, reached)
	}
	c.inside = b
	if !c.o.Progress || !c.o.Bookmarks {
		return dst, nil
	}
	c.ahead = false
	return c.bookmark(dst, wire.Event{Version: max(b.From, c.after), BatchTo: b.To, BatchAdmits: b.Admitted}), nil
}

// bookmark gives a bookmark unless it would vouch for what the reader may not have seen.
func (c *Cursor) bookmark(dst []Event, mark wire.Event) []Event {
	if mark.Version < c.sent || c.ahead {
		return dst
	}
	c.sent, mark.Type = mark.Version, wire.Bookmark
	return append(dst, Event{Event: mark})
}

// testify says how old the relay's state is. That is true also for a reader that is ahead of it, and moves nobody.
func (c *Cursor) testify(w Testimony) Event {
	return Event{Event: wire.Event{Type: wire.Bookmark, Version: max(c.after, 1), Testimony: w.String(c.clock.Now())}}
}

// Event is what a Cursor gives. Many readers share it: it must not be written to.
type Event struct {
	wire.Event
	of   *mvcc.Event // nil: it is this reader's alone
	left bool        // Object is what the event replaced, under its version
}

// Shared reports whether others may be given the same event.
func (e *Event) Shared() bool { return e.of != nil }

// Before is the object that the reader has if it has seen all before this event; nil: none.
func (e *Event) Before() *wire.Object {
	if e.of == nil || e.Type == wire.Added {
		return nil
	}
	return e.of.Prev
}

// Frame is the frame of an event in a form. It is made once and shared, if Shared.
func (e *Event) Frame(form mvcc.Form, encode func() ([]byte, error)) ([]byte, error) {
	if e.of == nil {
		return encode()
	}
	return e.of.Frame(form, e.Type, e.left, encode)
}
