package role

import "time"

// readiness is the part of a machine that watches leader-informer-sync and, as leader, renews it.
type readiness struct {
	busy    bool // a request is under way
	void    bool // and its answer counts for nothing
	seen    bool // record is what was last read or written
	reread  bool // the version of the Lease is in doubt
	ask     bool // the coordinator's own status should be asked
	live    bool // record was seen to change, or to come into being
	vouched bool // the coordinator said that it is ready
	denied  bool // or that it is not
	record  Record
	changed time.Duration // when a change was last seen
	shown   time.Duration // when a watch last showed the Lease
	vouchAt time.Duration // when the coordinator last vouched
	due     time.Duration // of the next request
	renew   time.Duration // of the next renewal, as leader
}

// result takes the end of a request.
func (s *readiness) result(m *self, now time.Duration, r Result) {
	s.busy = false
	if s.void { // it was asked of a coordinator that is left
		s.void, s.due = false, now
		return
	}
	switch {
	case r.Outcome == Conflict, r.outrun(s.record, s.shown): // another leader wrote it
		s.reread, s.due = true, now
	case r.Outcome == Failed:
		s.due = max(now, r.Sent+m.jitter(m.cfg.RetryPeriod))
		s.renew = s.due
	case r.Kind == ReadStatus:
		s.denied = !r.Ready
		if r.Ready {
			s.vouched, s.vouchAt = true, now
		}
	default:
		s.observe(now, r.Lease)
		s.due = now + m.jitter(m.cfg.RetryPeriod)
		if m.snap.Source == Nowhere {
			s.due = now + m.jitter(m.cfg.eager())
		}
		s.ask = r.Lease.Exists && !s.live
		if r.Kind == RenewSync {
			s.live = true
			s.renew = r.Sent + m.cfg.syncRenew()
		}
	}
}

// noticed takes what a watch showed.
func (s *readiness) noticed(now time.Duration, r Record) {
	s.shown = now
	s.observe(now, r)
}

func (s *readiness) observe(now time.Duration, r Record) {
	if r.older(s.record) {
		return
	}
	switch {
	case !r.Exists:
		s.live, s.vouched = false, false
	case s.seen && r.changed(s.record):
		s.live, s.changed = true, now
	}
	s.record, s.seen, s.reread = r, true, false
}

// ready reports whether the pool's cache is fresh.
func (s *readiness) ready(m *self, in Input) bool {
	return in.Coordinator && in.Now < s.expires(m)
}

// unready reports whether it is known not to be: there is nothing that says so, or the coordinator was asked.
func (s *readiness) unready(m *self, in Input) bool {
	return in.Coordinator && s.seen && (!s.record.Exists || s.denied || s.live) && !s.ready(m, in)
}

// expires is when the cache stops being fresh unless something is seen, 0 if it is not.
func (s *readiness) expires(m *self) time.Duration {
	if !s.seen || !s.record.Exists {
		return 0
	}
	duration, until := min(s.record.Duration, maxStretch*m.cfg.SyncDuration), time.Duration(0)
	if duration <= 0 {
		duration = m.cfg.SyncDuration
	}
	if s.live {
		until = s.changed + duration
	}
	if s.vouched {
		until = max(until, s.vouchAt+duration)
	}
	return until
}

// next is the request due, if there is one.
func (s *readiness) next(m *self, in Input, leads bool) (Action, bool) {
	if s.busy || !in.Coordinator || in.Stop {
		return Action{}, false
	}
	switch {
	case in.Now < s.when(in, leads) && !s.asking(m, in, leads):
		return Action{}, false
	case s.renewing(in, leads):
		lease := s.record
		lease.Holder, lease.Duration = m.cfg.Identity, m.cfg.SyncDuration
		s.busy = true
		return Action{Kind: RenewSync, Lease: lease}, true
	case s.asking(m, in, leads):
		s.ask, s.busy = false, true
		return Action{Kind: ReadStatus}, true
	}
	s.busy = true
	return Action{Kind: ReadSync}, true
}

// renewing reports whether the hub's part is to write the Lease, not to read it.
func (s *readiness) renewing(in Input, leads bool) bool {
	return leads && in.Fresh && s.seen && !s.reread
}

func (s *readiness) asking(m *self, in Input, leads bool) bool {
	return s.ask && !leads && !s.ready(m, in)
}

// when is the time of the next request.
func (s *readiness) when(in Input, leads bool) time.Duration {
	if s.renewing(in, leads) {
		return s.renew
	}
	return s.due
}
