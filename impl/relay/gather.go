package relay

import "time"

const (
	// defaultGather is the default of Config.Gather: far below what a controller waits before it acts on a change, and
	// long enough that a run of changes is written, encrypted and woken up for a few at a time.
	defaultGather = 20 * time.Millisecond
	// gatherBytes lets watchers go on at once, whatever the time, so that a burst is neither piled up nor lost from the
	// ring.
	gatherBytes = 256 << 10
)

// gather decides when watchers look at the ring. The first change after a quiet moment is shown at once. In a run of
// changes they are shown together, at most every Config.Gather, so no change is held back for longer than that. There
// is one timer for all watchers of a relay, and none while nothing changes. Relay.mu guards it.
type gather struct {
	wake    chan struct{} // closed and replaced when watchers should look
	seq     uint64        // they see events before this sequence number
	version uint64        // reached when they were woken
	at      time.Time     // when they were woken
	bytes   int64         // of the events held back
	pending bool          // the timer runs
}

// show has all watchers look, who see events before a sequence number.
func (g *gather) show(seq, version uint64, now time.Time) {
	g.seq, g.version, g.at, g.bytes = seq, version, now, 0
	g.look()
}

// look has all watchers look.
func (g *gather) look() {
	close(g.wake)
	g.wake = make(chan struct{})
}
