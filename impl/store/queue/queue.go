package queue

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/disk"
)

// Config says where a queue is kept and how much it takes.
type Config struct {
	// Disk is the folder of the queue, which no other process may use.
	Disk disk.Disk
	// Key encrypts the records. Default: none, they are in the clear.
	Key *disk.Key
	// MaxBytes bounds what waits. Default 16 MiB.
	MaxBytes int
	// MaxEvents bounds the Events among it. Default 1000.
	MaxEvents int
	// EventsPerMinute and EventBurst bound how fast Events are taken. Default 60 and 100.
	EventsPerMinute, EventBurst int
	// PushedPerSecond bounds how fast Events are pushed, so that they do not crowd a thin link. Default 10.
	PushedPerSecond int
	// Clock is for tests. Default the real one.
	Clock clock.Clock
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

// Validate checks a configuration; zero values mean defaults and are fine.
func (c Config) Validate() error {
	if c.Disk == nil {
		return errors.New("queue: no folder")
	}
	for name, n := range map[string]int{
		"MaxBytes": c.MaxBytes, "MaxEvents": c.MaxEvents, "EventsPerMinute": c.EventsPerMinute,
		"EventBurst": c.EventBurst, "PushedPerSecond": c.PushedPerSecond,
	} {
		if n < 0 {
			return fmt.Errorf("queue: %s is %d: want a number above 0, or 0 for the default", name, n)
		}
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.MaxBytes, c.MaxEvents, c.PushedPerSecond = cmp.Or(c.MaxBytes, 16<<20), cmp.Or(c.MaxEvents, 1000),
		cmp.Or(c.PushedPerSecond, 10)
	c.EventsPerMinute, c.EventBurst = cmp.Or(c.EventsPerMinute, 60), cmp.Or(c.EventBurst, 100)
	c.Clock, c.Logger = cmp.Or[clock.Clock](c.Clock, clock.RealClock{}), cmp.Or(c.Logger, slog.Default())
	return c
}

// Reasons why a write is not taken, for errors.Is. Its caller is told 503, or 429 for ErrTooFast.
var (
	ErrFull    = errors.New("the queue of writes is full: it is pushed when the cloud can be reached")
	ErrTooFast = errors.New("too many events: they are taken again in a minute")
	// ErrMoved is for the caller alone, which looks again.
	ErrMoved = errors.New("the entry is not what it was")
)

// Queue keeps writes until the cloud has them. See the package comment.
type Queue struct {
	Config

	// writing is held by the one that changes the queue, through the disk's Sync; mu only while memory changes, so that
	// reads wait for no disk. draining is held by Drain.
	writing, draining sync.Mutex
	journal           *journal
	bucket            bucket
	left              atomic.Uint64

	mu    sync.RWMutex
	state *state
	stats Stats
}

// Stats tells what a queue holds and did.
type Stats struct {
	Entries, Events, Bytes    int
	Oldest                    time.Time // when the oldest entry was first written
	FileBytes                 int64
	Taken, Coalesced, Refused int // writes
	// entries: pushed; dropped, as their object is gone or the cloud refuses them; that the cloud had already.
	Pushed, Dropped, Unneeded     int
	Why                           map[Why]int // of Dropped
	WrittenBytes                  int64
	Syncs, Rewritten, DamagedByte int
	LastError                     string // of the disk; "" if the last write succeeded
}

// Open reads what waits. A damaged file is no error: what can be read of it counts.
func Open(c Config) (*Queue, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	q := &Queue{Config: c, state: newState()}
	q.bucket = bucket{perMinute: c.EventsPerMinute, burst: c.EventBurst, left: float64(c.EventBurst), at: c.Clock.Now()}
	j, found, torn, err := openJournal(c.Disk, c.Key, func(r *record) { q.state.apply(r.own()) })
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	q.journal, q.stats.DamagedByte = j, found.bad
	if found.bad > 0 {
		c.Logger.Error("the queue of writes was damaged, or encrypted with a key that is not here: what could be read of "+
			"it will be pushed; look at the copy, then delete it",
			"file", badName, "damagedBytes", found.bad, "entries", len(q.state.entries))
	} else if n := len(q.state.entries); n > 0 || torn > 0 {
		c.Logger.Info("writes wait for the cloud", "entries", n, "tornBytes", torn)
	}
	if found.end+torn > 0 && !found.sealed && c.Key != nil { // what is, or may be, in the clear does not stay
		if !found.later {
			_ = c.Disk.Remove(badName)
		}
		if err := j.rewrite(q.state.frames(j.format)); err != nil {
			c.Logger.Error("the queue of writes cannot be encrypted: it stays in the clear until the next write", "err", err)
		}
	}
	return q, nil
}

// Close lets go of the file. All that was answered is on the disk.
func (q *Queue) Close() {
	q.writing.Lock()
	defer q.writing.Unlock()
	q.journal.close()
}

// Put takes a write. When it returns nil, the write survives a power cut and may be answered.
func (q *Queue) Put(w Write) error { return q.put(w, nil) }

// PutAfter is Put of a write that was made from an entry, nil if there was none: if that was pushed or written
// meanwhile, it does nothing but return ErrMoved. Else Base and Ours might not belong together, and what is in the one
// and not in the other would be taken for a change.
func (q *Queue) PutAfter(w Write, seen *Entry) error {
	return q.put(w, func(now *Entry) bool { return (now == nil) == (seen == nil) && (now == nil || now.Seq == seen.Seq) })
}

func (q *Queue) put(w Write, still func(now *Entry) bool) error {
	if err := w.validate(); err != nil {
		return err
	}
	if !json.Valid(w.Ours) || w.Base != nil && !json.Valid(w.Base) {
		return fmt.Errorf("queue: the %v is not JSON", w.Target)
	}
	q.writing.Lock()
	defer q.writing.Unlock()
	old := q.state.entries[w.Target] // no lock: only who holds writing changes it
	if still != nil && !still(old) {
		return ErrMoved
	}
	if old != nil && bytes.Equal(old.Ours, w.Ours) {
		q.note(func(s *Stats) { s.Coalesced++ })
		return nil
	}
	if err := q.admit(w, old); err != nil {
		q.note(func(s *Stats) { s.Refused++ })
		return err
	}
	r := &record{
		kind: recordPut, seq: q.state.last + 1, entry: Entry{
			Target: w.Target, Seq: q.state.last + 1, At: q.Clock.Now(), Ours: w.Ours,
		},
	}
	if old == nil && w.Base != nil {
		r.flag, r.entry.Base = true, w.Base
	}
	if err := q.write(r.own(), true); err != nil {
		return err
	}
	q.note(func(s *Stats) {
		s.Taken++
		if old != nil {
			s.Coalesced++
		}
	})
	return nil
}

// admit reports whether there is room for a write.
func (q *Queue) admit(w Write, old *Entry) error {
	more := len(w.Ours)
	if old == nil {
		more = (&Entry{Target: w.Target, Base: w.Base, Ours: w.Ours}).size()
	}
	if len(w.Ours)+len(w.Base) > maxRecord-4096 || q.state.bytes+more > q.MaxBytes {
		return ErrFull
	}
	if !w.Kind.event() {
		return nil
	}
	if old == nil && q.state.events >= q.MaxEvents {
		return ErrFull
	}
	if !q.bucket.take(q.Clock.Now()) {
		return ErrTooFast
	}
	return nil
}

// write makes a record count: on the disk, then in memory. Its caller holds writing.
func (q *Queue) write(r *record, sync bool) error {
	frame := q.journal.appendFrame(nil, r)
	before, rewritten := q.journal.size, 0
	err := q.journal.append(frame, sync)
	if err != nil && q.journal.file == nil || err == nil && q.journal.wasteful(int64(q.state.bytes)) {
		// A new file holds the state and this record. If there is one that will do, it is no harm if that fails.
		if again := q.journal.rewrite(append(q.state.frames(q.journal.format), frame...)); again == nil {
			before, rewritten, sync, err = 0, 1, true, nil
		} else if q.journal.file == nil {
			err = again
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.FileBytes = q.journal.size
	if err != nil {
		if q.stats.LastError == "" {
			q.Logger.Error("cannot write the queue: writes are refused until the disk takes them", "err", err)
		}
		q.stats.LastError = err.Error()
		return err
	}
	q.stats.WrittenBytes += q.journal.size - before
	q.stats.Rewritten += rewritten
	if sync {
		q.stats.Syncs++
	}
	q.stats.LastError = ""
	q.state.apply(r)
	return nil
}

// Lookup gives the entry of a target: what its clients should see.
func (q *Queue) Lookup(t Target) (*Entry, bool) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	e, ok := q.state.entries[t]
	return e, ok
}

// Left counts the entries that the cloud has had, or that are void. It counts one just before it goes: see
// offline.Overlay.
func (q *Queue) Left() uint64 { return q.left.Load() }

// Waits reports whether anything of an object waits, whatever its uid.
func (q *Queue) Waits(k Kind, namespace, name string) bool {
	q.mu.RLock()
	defer q.mu.RUnlock()
	for t := range q.state.entries {
		if t.Kind == k && t.Namespace == namespace && t.Name == name {
			return true
		}
	}
	return false
}

// Entries gives all that waits, in the order in which it will be pushed.
func (q *Queue) Entries() []*Entry {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.state.ordered()
}

// Len is how much waits.
func (q *Queue) Len() int {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return len(q.state.entries)
}

// Statuses is how much waits beside Events.
func (q *Queue) Statuses() int {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return len(q.state.entries) - q.state.events
}

// Stats tells what the queue holds and did.
func (q *Queue) Stats() Stats {
	q.mu.RLock()
	defer q.mu.RUnlock()
	s := q.stats
	s.Entries, s.Events, s.Bytes = len(q.state.entries), q.state.events, q.state.bytes
	for _, e := range q.state.entries {
		if s.Oldest.IsZero() || e.At.Before(s.Oldest) {
			s.Oldest = e.At
		}
	}
	return s
}

func (q *Queue) note(change func(*Stats)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change(&q.stats)
}

// bucket bounds a rate.
type bucket struct {
	perMinute, burst int
	left             float64
	at               time.Time
}

func (b *bucket) take(now time.Time) bool {
	if d := now.Sub(b.at); d > 0 {
		b.left = min(b.left+d.Minutes()*float64(b.perMinute), float64(b.burst))
	}
	b.at = now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
