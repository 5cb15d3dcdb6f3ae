package relay

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/btree"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Config is what a relay is made of.
type Config struct {
	// Resource is what it holds.
	Resource Resource
	// RingBytes bounds the events kept for watchers, in bytes. Default 16 MiB, at least 64 KiB. It should hold the changes of
	// the longest time that a client may be away: grace period, jitter and failover.
	RingBytes int64
	// RingAge bounds the same in time. Default 5 min, at least 1 s.
	RingAge time.Duration
	// MaxBytes bounds what is taken from another relay: what this one holds then, and a list or batch that comes, with 1 KiB beside each
	// object. Default 128 MiB, at least 1 MiB. What comes from the cloud is not bounded.
	MaxBytes int64
	// WriteTimeout closes a watch or list whose client takes nothing for that long. Default 60 s.
	WriteTimeout time.Duration
	// Gather bounds how long a change may be held back from watchers while changes come in a run, so that each is woken for
	// several at once. A change after a quiet moment goes out at once. Default 20 ms; negative: nothing is held back.
	Gather time.Duration
	// Clock is for tests. Default the real one.
	Clock clock.WithTickerAndDelayedExecution
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

// Validate checks a configuration; zero values mean defaults and are fine.
func (c Config) Validate() error {
	switch {
	case c.Resource.Resource == "" || c.Resource.Kind == "":
		return fmt.Errorf("relay: no resource")
	case c.RingBytes != 0 && c.RingBytes < 64<<10:
		return fmt.Errorf("relay: ring of %d bytes: at least %d", c.RingBytes, 64<<10)
	case c.MaxBytes != 0 && c.MaxBytes < 1<<20:
		return fmt.Errorf("relay: %d bytes from another relay: at least %d", c.MaxBytes, 1<<20)
	case c.RingAge != 0 && c.RingAge < time.Second:
		return fmt.Errorf("relay: ring age %v: at least 1s", c.RingAge)
	case c.Gather > time.Second:
		return fmt.Errorf("relay: changes held back for %v: at most 1s", c.Gather)
	case c.WriteTimeout < 0:
		return fmt.Errorf("relay: write timeout %v is negative", c.WriteTimeout)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.RingBytes == 0 {
		c.RingBytes = 16 << 20
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 128 << 20
	}
	if c.RingAge == 0 {
		c.RingAge = 5 * time.Minute
	}
	if c.WriteTimeout == 0 {
		c.WriteTimeout = time.Minute
	}
	if c.Gather == 0 {
		c.Gather = defaultGather
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Relay is a list/watch cache of one resource. See the package comment.
type Relay struct {
	cfg    Config
	enc    wire.Encoding
	schema *wire.Schema // nil for custom resources

	mu       sync.RWMutex
	notify   chan struct{} // closed and replaced when version, synced or denied changes
	stopped  bool
	synced   bool
	version  uint64  // reached
	history  History // that version is of
	tree     *btree.BTreeG[*wire.Object]
	bytes    int64 // of all objects in tree
	ring     ring
	gather   gather
	epoch    uint64 // grows when the history is thrown away: watches of before end
	progress time.Time
	restored bool    // the state comes from a disk, here or where it was read, and no source has shown a sign since
	denied   *denial // nil: the source gives the resource
	denials  uint64  // grows at a denial: watches of before end
	said     uint64  // grows when relays that read this one have to be told its testimony again
	newer    string  // path of a field that the compiled type does not know, "" if none was seen
	counts   counts
	streams  streams
}

// counts are what a relay counts for its metrics; guarded by Relay.mu.
type counts struct {
	replaced, applied, dropped, flushed, histories uint64
	closed                                         map[string]uint64 // streams closed by the relay, by reason
}

// New returns an empty relay that answers 503 until its first Replace.
func New(c Config) (*Relay, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	r := &Relay{
		cfg: c, enc: c.Resource.encoding, schema: c.Resource.schema(),
		notify: make(chan struct{}), tree: newTree(), gather: gather{wake: make(chan struct{})},
		said: 1, counts: counts{closed: map[string]uint64{}},
	}
	r.cfg.Logger = c.Logger.With("resource", c.Resource.String())
	return r, nil
}

func newTree() *btree.BTreeG[*wire.Object] {
	return btree.NewG(32, func(a, b *wire.Object) bool { return a.Key < b.Key })
}

// Resource returns what the relay holds.
func (r *Relay) Resource() Resource { return r.cfg.Resource }

// Clock is that of the relay.
func (r *Relay) Clock() clock.WithTickerAndDelayedExecution { return r.cfg.Clock }

// Run ages the ring and closes streams whose client takes nothing, until ctx ends; then it ends all watches.
func (r *Relay) Run(ctx context.Context) error {
	tick := r.cfg.Clock.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			r.shutdown()
			return nil
		case <-tick.C():
			r.janitor()
		}
	}
}

func (r *Relay) shutdown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.stopped = true
		r.wake()
	}
}

func (r *Relay) janitor() {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	r.ring.trim(r.cfg.RingBytes, now.Add(-r.cfg.RingAge))
	base := r.ring.base
	r.mu.Unlock()
	for s, why := range r.streams.stuck(now, base, r.cfg.WriteTimeout) {
		r.closed(why)
		r.cfg.Logger.Info("closing a stream whose client takes nothing", "client", s.client)
		s.end()
	}
}

// Status is a snapshot of a relay for people and policies.
type Status struct {
	Synced     bool
	Version    uint64  // reached
	History    History // of the cloud, that Version is of
	Oldest     uint64  // the oldest version from which a watch can resume
	Objects    int
	Bytes      int64 // of all objects
	RingEvents int
	RingBytes  int64
	Watchers   int
	ProgressAt time.Time // when the last list, event or bookmark came from upstream, on the monotonic clock; zero: never
	Restored   bool      // the state comes from a snapshot, here or where it was read, ProgressAt is by a wall clock, and no source has shown a sign since: not fresh
	Denied     string    // what the source answered that does not give the resource: see Deny; "": it does
	NewerField string    // a field of the cloud's objects that the compiled type does not know, as a path of numbers
}

// Age is the time since the state was last known to be fresh; ok is false if it never was.
func (s *Status) Age(now time.Time) (age time.Duration, ok bool) {
	if s.ProgressAt.IsZero() {
		return 0, false
	}
	return max(now.Sub(s.ProgressAt), 0), true // a wall clock may have been set back since the snapshot
}

// Fresh tells whether the source has shown a sign within a time.
func (s *Status) Fresh(now time.Time, within time.Duration) bool {
	age, ok := s.Age(now)
	return s.Synced && !s.Restored && s.Denied == "" && ok && age <= within
}

// Status returns a snapshot.
func (r *Relay) Status() Status {
	r.mu.RLock()
	defer r.mu.RUnlock()
	denied := ""
	if why := r.refusal(); why != nil {
		denied = fmt.Sprintf("%d %s", why.ErrStatus.Code, why.ErrStatus.Message)
	}
	return Status{
		Synced: r.synced, Version: r.version, History: r.history, Oldest: r.ring.floor, Objects: r.tree.Len(), Bytes: r.bytes,
		RingEvents: len(r.ring.events), RingBytes: r.ring.bytes, Watchers: r.streams.len(), ProgressAt: r.progress, Restored: r.restored, Denied: denied, NewerField: r.newer,
	}
}

// Object returns the object at a key, "namespace/name" or "name" as wire.Object.Key has it; nil if there is none.
func (r *Relay) Object(key string) *wire.Object {
	r.mu.RLock()
	defer r.mu.RUnlock()
	o, _ := r.tree.Get(&wire.Object{Key: key})
	return o
}

// WaitVersion waits until the relay has reached a version, or returns ctx's error.
func (r *Relay) WaitVersion(ctx context.Context, version uint64) error {
	return r.until(ctx, func() bool { return r.synced && r.version >= version })
}

// until waits until something holds of what r.mu guards, or returns ctx's error.
func (r *Relay) until(ctx context.Context, holds func() bool) error {
	return r.WaitUntil(ctx, func() bool {
		r.mu.RLock()
		defer r.mu.RUnlock()
		return holds()
	})
}

// WaitUntil waits until something holds that depends on what the relay has and how fresh that is, or returns ctx's error.
func (r *Relay) WaitUntil(ctx context.Context, holds func() bool) error {
	for {
		r.mu.RLock()
		changed := r.notify
		r.mu.RUnlock()
		if holds() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// broadcast wakes everybody who waits for a version; r.mu is held.
func (r *Relay) broadcast() {
	close(r.notify)
	r.notify = make(chan struct{})
}

// Resumable tells whether a watch can start at a version without a new list.
func (r *Relay) Resumable(version uint64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.synced {
		return false
	}
	_, ok := r.ring.from(version)
	return ok
}
