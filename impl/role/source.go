package role

import "time"

// sourcing is the part of a machine that chooses where the relays are fed from; see the package comment.
type sourcing struct {
	leave time.Duration // when the pool's cache is left for the cloud; 0: it is not planned
	moved uint64        // Input.Reached when that was planned
	back  time.Duration // when the cloud is left for the pool's cache; 0: likewise
	first time.Duration // until when a hub without a state waits for the hub that leads; 0: it does not
}

// choose returns the source, which may be the one of before.
func (s *sourcing) choose(m *self, e *election, in Input, ready bool) Source {
	ready = ready && !in.Doubted
	if e.held {
		s.leave, s.back = 0, 0
		return Cloud
	}
	switch m.snap.Source {
	case Cloud:
		return s.atCloud(m, e, in, ready)
	case Coordinator:
		return s.atCoordinator(m, in, ready)
	}
	switch {
	case ready, in.Have && !in.Aged: // the grace is for a state that was fresh when it began
		return s.atCoordinator(m, in, ready)
	case in.Now < m.patience():
		return Nowhere
	case !in.Cloud && in.Coordinator:
		return Coordinator
	case s.waits(m, e, in):
		return Nowhere
	}
	return Cloud
}

// waits reports whether a hub that holds nothing goes on waiting for the hub that leads. That one lists at the cloud
// for all: a thin link brings the list no sooner if everybody asks for it, and what they asked for is still on its way
// when it is needed for something else.
func (s *sourcing) waits(m *self, e *election, in Input) bool {
	if !in.Coordinator || !e.lost(m) || e.free(m, in.Now) {
		return false
	}
	if s.first == 0 {
		s.first = in.Now + m.cfg.Grace + m.spread(m.cfg.Spread)
	}
	return in.Now < s.first
}

// atCoordinator stays with the pool's cache. While the cloud is away there is nothing to go to, and when it comes back
// the pool has the whole of Grace to find a leader. A cache that is not fresh and moves is catching up over a link that
// is full: it would only take longer if others asked for the same.
func (s *sourcing) atCoordinator(m *self, in Input, ready bool) Source {
	s.back = 0
	switch {
	case ready, !in.Cloud:
		s.leave = 0
	case s.leave == 0, in.Now >= s.leave && in.Reached != s.moved && !in.Doubted:
		s.leave, s.moved = in.Now+m.spread(m.cfg.Spread), in.Reached
		if !in.Doubted { // what may be forged is not served on
			s.leave += m.cfg.Grace
		}
	}
	if s.leave != 0 && in.Now >= s.leave { // at once if there is no Grace
		s.leave = 0
		return Cloud
	}
	return Coordinator
}

// atCloud goes back once the pool's cache is ready; if there is no cloud, also to one that is not.
func (s *sourcing) atCloud(m *self, e *election, in Input, ready bool) Source {
	switch {
	case !ready && !in.Cloud && in.Coordinator:
		s.back = in.Now
	case !ready:
		s.back = 0
	case !in.Cloud, in.Silent && e.lost(m):
		s.back = in.Now
	case s.back == 0:
		// A hub that led often leads again a moment later, under a new term.
		s.back = max(in.Now, e.lingers(m)) + m.spread(m.cfg.Spread/10)
	}
	if s.back != 0 && in.Now >= s.back {
		s.back = 0
		return Coordinator
	}
	return Cloud
}
