package relay

import (
	"sort"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// event is one change, or a bookmark when cur is nil. It is immutable but for its cached frames.
type event struct {
	seq     uint64
	version uint64 // the version it is stamped with
	cur     *wire.Object
	prev    *wire.Object // nil: the object did not exist before
	deleted bool         // cur is the last state of what was deleted
	batch   *batch       // not nil: part of a list that replaced an older state
	at      time.Time

	// frame is the whole frame of this event in the relay's own encoding and with its plain type.
	frame atomic.Pointer[[]byte]
	// frames are what else was made of it; kept for recent events only.
	frames atomic.Pointer[frames]
}

// batch is a list that replaced an older state: its events lead from version from to version to. They leave out forms of objects that
// others have replaced.
type batch struct {
	from, to uint64
	// Whoever has seen a state inside, elsewhere, up to this version, goes on from there as if all had been told. 0: nobody can, because it is
	// not known what happened on the way (see Trail).
	admitted uint64
}

// inside tells whether a version is none that the batch leads from or to.
func (b *batch) inside(v uint64) bool { return b != nil && b.from < v && v < b.to }

// admits tells whether a client that has seen a version goes on with the rest of the batch.
func (b *batch) admits(v uint64) bool { return !b.inside(v) || v <= b.admitted }

func (e *event) typ() string {
	switch {
	case e.cur == nil:
		return wire.Bookmark
	case e.deleted:
		return wire.Deleted
	case e.prev == nil:
		return wire.Added
	default:
		return wire.Modified
	}
}

func (e *event) size() int64 {
	n := int64(200)
	if e.cur != nil {
		n += int64(len(e.cur.Raw)) + 100
	}
	if e.prev != nil {
		n += int64(len(e.prev.Raw))
	}
	return n
}

// after tells whether the event comes after the state that a client at version v has seen. The deletions of a batch are
// stamped with the version that the batch starts from, and come after it all the same.
func (e *event) after(v uint64) bool {
	return e.version > v || e.version == v && e.batch != nil && e.batch.from == v
}

// recentFrames is how many of the last events keep their frames in other encodings.
const recentFrames = 64

// ring holds the last events in order. Events have consecutive sequence numbers from base on. Relay.mu guards it.
type ring struct {
	events []*event
	base   uint64 // sequence number of events[0]
	bytes  int64
	floor  uint64 // the oldest version from which a watch can resume
}

func (r *ring) next() uint64 { return r.base + uint64(len(r.events)) }

func (r *ring) reset(floor uint64) {
	r.base, r.events, r.bytes, r.floor = r.next(), nil, 0, floor
}

func (r *ring) push(e *event) {
	e.seq = r.next()
	r.events = append(r.events, e)
	r.bytes += e.size()
	if n := len(r.events); n > recentFrames {
		r.events[n-1-recentFrames].frames.Store(nil)
	}
}

// bookmark notes progress without a change. A run of bookmarks collapses only at the ring's end and never reuses a
// sequence number, so that watchers see each.
func (r *ring) bookmark(version uint64, at time.Time) {
	r.push(&event{version: version, at: at})
}

// trim drops the oldest events beyond the bounds; a batch goes as a whole in effect, since floor passes its end. A bookmark that goes leaves
// floor where it is: no client that is behind it misses anything (GetIntervalLocked in storage/cacher counts events only).
func (r *ring) trim(maxBytes int64, oldest time.Time) {
	n := 0
	for n < len(r.events) && (r.bytes > maxBytes || r.events[n].at.Before(oldest)) {
		e := r.events[n]
		r.bytes -= e.size()
		if e.cur != nil {
			r.floor = max(r.floor, e.version)
		}
		if e.batch != nil {
			r.floor = max(r.floor, e.batch.to)
		}
		r.events[n] = nil
		n++
	}
	if n == 0 {
		return
	}
	r.base += uint64(n)
	r.events = r.events[n:]
	if cap(r.events) > 4*len(r.events)+64 {
		r.events = append(make([]*event, 0, 2*len(r.events)), r.events...)
	}
}

// from returns the sequence number at which a client at version v goes on; ok is false if that cannot be done: v is older
// than the ring, or inside a batch that does not admit it.
func (r *ring) from(v uint64) (seq uint64, ok bool) {
	if v < r.floor {
		return 0, false
	}
	i := sort.Search(len(r.events), func(i int) bool { return r.events[i].after(v) })
	if i < len(r.events) {
		if b := r.events[i].batch; b != nil && !b.admits(v) {
			return 0, false
		}
	}
	return r.base + uint64(i), true
}

// inside tells whether what goes on at a sequence number and version is inside a batch: a state that nobody has whole.
func (r *ring) inside(seq, v uint64) bool {
	i := seq - r.base
	return i < uint64(len(r.events)) && r.events[i].batch.inside(v)
}

// since appends the events from a sequence number on, at most n, to dst; ok is false if the ring has passed it. It copies,
// because trim clears what it drops.
func (r *ring) since(dst []*event, seq uint64, n int) (events []*event, ok bool) {
	if seq < r.base {
		return dst, false
	}
	tail := r.events[min(seq-r.base, uint64(len(r.events))):]
	return append(dst, tail[:min(len(tail), n)]...), true
}
