package relay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/mvcc"
)

// Relay is a list/watch cache of one resource. See the package comment.
type Relay struct {
	cfg Config

	mu       sync.RWMutex
	notify   chan struct{} // closed and replaced when version, synced or denied changes
	stopped  bool
	synced   bool
	state    mvcc.State
	history  History // that versions are of
	gather   gather
	progress time.Time
	// the state comes from a disk, here or where it was read, and no source has shown a sign since.
	restored bool
	denied   *apierrors.StatusError // what the source answered that does not give the resource; nil: it does
	deniedAt time.Time
	denials  uint64 // grows at a denial: watches of before end
	retired  bool   // see Retire
	said     uint64 // grows when relays that read this one have to be told its testimony again
	newer    newer
	listKind atomic.Value // of lists of the resource, a string; none: nobody has said it
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
	c.Logger = c.Logger.With("resource", c.Resource.String())
	return &Relay{
		cfg: c, notify: make(chan struct{}), state: mvcc.New(c.Resource.encoding), gather: gather{wake: make(chan struct{})},
		said: 1, newer: newer{schema: c.Resource.schema()}, counts: counts{closed: map[string]uint64{}},
	}, nil
}

// Resource returns what the relay holds.
func (r *Relay) Resource() Resource {
	res := r.cfg.Resource
	res.ListKind, _ = r.listKind.Load().(string)
	return res
}

// Lists says what lists of the resource declare.
func (r *Relay) Lists(kind string) { r.listKind.Store(kind) }

// Clock is that of the relay.
func (r *Relay) Clock() clock.WithTickerAndDelayedExecution { return r.cfg.Clock }

// Run ages the ring and closes streams whose client takes nothing, until ctx ends; then it ends all watches. That of a
// retired relay ends with its last stream.
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
			if r.gone() {
				return nil
			}
		}
	}
}

func (r *Relay) shutdown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.stopped = true
		r.gather.look()
	}
}

// trim drops events beyond the bounds; r.mu is held.
func (r *Relay) trim(now time.Time) { r.state.Trim(r.cfg.RingBytes, now.Add(-r.cfg.RingAge)) }

func (r *Relay) janitor() {
	now := r.cfg.Clock.Now()
	r.mu.Lock()
	r.trim(now)
	base := r.state.Base()
	r.mu.Unlock()
	for s, why := range r.streams.stuck(now, base, r.cfg.WriteTimeout) {
		r.closed(why)
		r.cfg.Logger.Info("closing a stream whose client takes nothing", "client", s.client)
		s.end()
	}
}

// Status returns a snapshot.
func (r *Relay) Status() Status {
	r.mu.RLock()
	defer r.mu.RUnlock()
	s := Status{
		Synced: r.synced, Version: r.state.Version(), History: r.history, Oldest: r.state.Floor(), Objects: r.state.Len(),
		Bytes:    r.state.Bytes(),
		Watchers: r.streams.len(), ProgressAt: r.progress, Restored: r.restored, NewerField: r.newer.field,
		Joins: r.cfg.Late && !r.synced,
	}
	s.RingEvents, s.RingBytes = r.state.Size()
	if r.denied != nil {
		s.Denied = fmt.Sprintf("%d %s", r.denied.ErrStatus.Code, r.denied.ErrStatus.Message)
	}
	return s
}

// broadcast wakes everybody who waits for a version; r.mu is held.
func (r *Relay) broadcast() {
	close(r.notify)
	r.notify = make(chan struct{})
}

// closed counts a stream that is ended because of its reader.
func (r *Relay) closed(reason string) {
	r.mu.Lock()
	r.counts.closed[reason]++
	r.mu.Unlock()
}

// changed shows watchers what was pushed to the ring, now or soon; r.mu is held.
func (r *Relay) changed(now time.Time, size int64) {
	g := &r.gather
	g.bytes += size
	since := now.Sub(g.at)
	switch {
	case since >= r.cfg.Gather, g.bytes >= min(gatherBytes, r.cfg.RingBytes/4):
		r.show(now)
	case !g.pending:
		g.pending = true
		// A fake clock calls back while it holds its own lock.
		r.cfg.Clock.AfterFunc(r.cfg.Gather-since, func() { go r.gathered() })
	}
}

// gathered is what the timer does.
func (r *Relay) gathered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gather.pending = false
	if r.gather.seq != r.state.Next() { // else they were shown by their size
		r.show(r.cfg.Clock.Now())
	}
}

// show shows watchers all that there is; r.mu is held.
func (r *Relay) show(now time.Time) { r.gather.show(r.state.Next(), r.state.Version(), now) }
