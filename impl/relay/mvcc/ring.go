package mvcc

import (
	"sort"
	"time"
)

// recentFrames is how many of the last events keep their frames in other encodings.
const recentFrames = 64

// ring holds the last events in order. Events have consecutive sequence numbers from base on.
type ring struct {
	events []*Event
	base   uint64 // sequence number of events[0]
	bytes  int64
	floor  uint64 // the oldest version from which a watch can resume
}

// Next is the sequence number of the event that comes.
func (r *ring) Next() uint64 { return r.base + uint64(len(r.events)) }

// Floor is the oldest version from which a watch can resume.
func (r *ring) Floor() uint64 { return r.floor }

// Base is the sequence number of the first event that the ring has.
func (r *ring) Base() uint64 { return r.base }

// Size is the number of events, and their bytes.
func (r *ring) Size() (events int, bytes int64) { return len(r.events), r.bytes }

func (r *ring) reset(floor uint64) {
	r.base, r.events, r.bytes, r.floor = r.Next(), nil, 0, floor
}

func (r *ring) push(e *Event) {
	r.events = append(r.events, e)
	r.bytes += e.size()
	if n := len(r.events); n > recentFrames {
		r.events[n-1-recentFrames].frames.Store(nil)
	}
}

// Trim drops the oldest events beyond the bounds; a batch goes as a whole in effect, since floor passes its end. A
// bookmark that goes leaves floor where it is: no client that is behind it misses anything (GetIntervalLocked in
// storage/cacher counts events only).
func (r *ring) Trim(maxBytes int64, oldest time.Time) {
	n := 0
	for n < len(r.events) && (r.bytes > maxBytes || r.events[n].at.Before(oldest)) {
		e := r.events[n]
		r.bytes -= e.size()
		if e.Cur != nil {
			r.floor = max(r.floor, e.Version)
		}
		if e.Batch != nil {
			r.floor = max(r.floor, e.Batch.To)
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
		r.events = append(make([]*Event, 0, 2*len(r.events)), r.events...)
	}
}

// From returns the sequence number at which a client at version v goes on; ok is false if that cannot be done: v is
// older than the ring, or inside a batch that does not admit it.
func (r *ring) From(v uint64) (seq uint64, ok bool) {
	if v < r.floor {
		return 0, false
	}
	i := sort.Search(len(r.events), func(i int) bool { return r.events[i].After(v) })
	if i < len(r.events) {
		if b := r.events[i].Batch; b != nil && !b.Admits(v) {
			return 0, false
		}
	}
	return r.base + uint64(i), true
}

// Inside reports whether what goes on at a sequence number and version is inside a batch: a state that nobody has
// whole.
func (r *ring) Inside(seq, v uint64) bool {
	i := seq - r.base
	return i < uint64(len(r.events)) && r.events[i].Batch.Inside(v)
}

// Had reports whether the ring's state was at exactly this version once.
func (r *ring) Had(v uint64) bool {
	if v == r.floor {
		return true
	}
	for _, e := range r.events {
		if e.Version == v {
			return true
		}
	}
	return false
}
