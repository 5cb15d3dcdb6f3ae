package relay

import "time"

const (
	// defaultGather is the default of Config.Gather: far below what a controller waits before it acts on a change, and long
	// enough that a run of changes is written, encrypted and woken up for a few at a time.
	defaultGather = 20 * time.Millisecond
	// gatherBytes lets watchers go on at once, whatever the time, so that a burst is neither piled up nor lost from the ring.
	gatherBytes = 256 << 10
)

// gather decides when watchers look at the ring. The first change after a quiet moment is shown at once. In a run of changes
// they are shown together, at most every Config.Gather, so no change is held back for longer than that. There is one timer
// for all watchers of a relay, and none while nothing changes. Relay.mu guards it.
type gather struct {
	wake    chan struct{} // closed and replaced when watchers should look
	seq     uint64        // they see events before this sequence number
	version uint64        // reached when they were woken
	at      time.Time     // when they were woken
	bytes   int64         // of the events held back
	pending bool          // the timer runs
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
	if r.gather.seq != r.ring.next() { // else they were shown by their size
		r.show(r.cfg.Clock.Now())
	}
}

// show wakes all watchers; r.mu is held.
func (r *Relay) show(now time.Time) {
	g := &r.gather
	g.seq, g.version, g.at, g.bytes = r.ring.next(), r.version, now, 0
	r.wake()
}

// wake has all watchers look; r.mu is held.
func (r *Relay) wake() {
	close(r.gather.wake)
	r.gather.wake = make(chan struct{})
}
