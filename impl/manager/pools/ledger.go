package pools

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/process"
)

// settle is for how long pools of which something was told are collected: the nodes of a pool that starts tell all at
// once.
const settle = 5 * time.Second

// Entry is what a hub told, and when that was heard.
type Entry struct {
	digest.Digest
	Told  time.Time
	Reads *ReadsEntry // nil: it told nothing of them. Nobody may change it
}

// ReadsEntry is what a hub told of reads, and when that was heard.
type ReadsEntry struct {
	digest.Reads
	Told time.Time
}

// readsHeard are the reads that a hub told last.
type readsHeard struct {
	ReadsEntry      // it does not change
	stands     bool // the Lease still says so: it was not told again
}

// Ledger has what hubs told. It is safe for concurrent use.
type Ledger struct {
	clock clock.WithTicker

	mu      sync.Mutex
	told    map[string]Entry // by node
	reads   map[string]*readsHeard
	pools   map[string]string   // of nodes that there are
	dirty   map[string]struct{} // pools of which something was told
	poke    chan struct{}
	refused int // digests that are invalid
}

// NewLedger makes one in which nothing is.
func NewLedger(c clock.WithTicker) *Ledger {
	return &Ledger{
		clock: c, told: map[string]Entry{}, reads: map[string]*readsHeard{}, pools: map[string]string{},
		dirty: map[string]struct{}{}, poke: make(chan struct{}, 1),
	}
}

// Hear notes what a Lease says, if anything.
func (l *Ledger) Hear(node, text string) {
	if text == "" {
		return
	}
	d, err := digest.Parse(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.refused++
		return
	}
	if was, known := l.told[node]; known && was.Digest == d { // the Lease was written by somebody else since
		return
	}
	l.told[node] = Entry{Digest: d, Told: l.clock.Now()}
	l.mark(l.pools[node])
}

// HearReads notes what a Lease says of reads. The next heartbeat takes it away; so what is said again then is told
// again.
func (l *Ledger) HearReads(node, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.reads[node]
	if text == "" {
		if was != nil {
			was.stands = false
		}
		return
	}
	r, err := digest.ParseReads(text)
	if err != nil {
		l.refused++
		return
	}
	if was != nil && was.stands && was.Text() == r.Text() { // the Lease was written by somebody else since
		return
	}
	l.reads[node] = &readsHeard{ReadsEntry{r, l.clock.Now()}, true}
	l.mark(l.pools[node])
}

// RestoreReads notes reads that were noted before this process was there, unless more is known.
func (l *Ledger) RestoreReads(node string, e ReadsEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was := l.reads[node]; was == nil || e.Told.After(was.Told) || e.Text() == was.Text() {
		l.reads[node] = &readsHeard{e, true}
	}
}

// Restore notes what was noted before this process was there, unless more is known.
func (l *Ledger) Restore(node string, e Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, known := l.told[node]
	if !known || e.Told.After(was.Told) || e.Digest == was.Digest {
		l.told[node] = e
	}
}

// SetNode notes that there is a node, and its pool.
func (l *Ledger) SetNode(node, pool string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, known := l.pools[node]; known && was == pool {
		return
	}
	l.pools[node] = pool
	if _, told := l.told[node]; told {
		l.mark(pool)
	}
}

// Forget notes that a node is gone, and all that its hub told.
func (l *Ledger) Forget(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.told, node)
	delete(l.reads, node)
	delete(l.pools, node)
}

// Hush notes that a node has no Lease any more.
func (l *Ledger) Hush(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.told, node)
	delete(l.reads, node)
}

// Of is what the hub of a node told; false: nothing.
func (l *Ledger) Of(node string) (Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, told := l.told[node]
	if r := l.reads[node]; r != nil {
		e.Reads = &r.ReadsEntry
	}
	return e, told
}

// mark notes that something was told of a pool.
func (l *Ledger) mark(pool string) {
	if pool == "" {
		return
	}
	l.dirty[pool] = struct{}{}
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// Follow calls changed for each pool of which something was told, until ctx ends. What is told within some seconds is
// one change.
func (l *Ledger) Follow(ctx context.Context, changed func(pool string)) {
	for {
		select {
		case <-l.poke:
		case <-ctx.Done():
			return
		}
		process.Pause(ctx, l.clock, settle)
		l.mu.Lock()
		all := l.dirty
		l.dirty = map[string]struct{}{}
		l.mu.Unlock()
		for pool := range all {
			changed(pool)
		}
	}
}
