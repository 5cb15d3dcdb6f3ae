package role

import (
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// election is the part of a machine that stands for leader and keeps the election Lease.
type election struct {
	busy   bool // a request is under way
	void   bool // and its answer counts for nothing
	read   bool // the last result was a read: the only moment to acquire
	reread bool // the version of the Lease is in doubt
	sighting
	due     time.Duration // of the next request
	could   bool          // was eligible at the last step
	reached bool          // the coordinator was, at the last step
	since   time.Duration // when it was reached again
	tried   bool          // stopping: giving back was tried

	held    bool
	led     bool          // held once
	ended   time.Duration // when held ended
	term    contract.Term
	renewed time.Duration // when the last successful write was sent
	barred  time.Duration // does not stand before this
	unable  time.Duration // since when Input.Unable holds for a leader, 0: it does not
	vain    int           // how often in a row this hub made way for that
}

// result takes the end of a request.
func (e *election) result(m *self, now time.Duration, r Result) {
	e.busy = false
	if e.void { // it was asked of a coordinator that is left
		e.void, e.due = false, now
		return
	}
	if r.outrun(e.record, e.shown) {
		e.reread, e.due = true, now
		return
	}
	if r.Outcome == OK {
		e.observe(now, r.Lease)
	}
	switch {
	case r.Outcome == Conflict:
		// Somebody else wrote, or a write of ours that seemed to fail was applied: only a read can tell.
		e.reread = true
		e.due = now
		if r.Kind == Acquire {
			e.due = now + m.jitter(m.cfg.eager())
		}
	case r.Outcome == Failed:
		e.due = max(now, r.Sent+m.jitter(m.cfg.RetryPeriod))
	case r.Kind == ReadElection:
		e.read, e.reread = true, false
		e.due = now
	case r.Kind == Acquire:
		version, err := strconv.ParseUint(r.Lease.Version, 10, 64)
		e.due = r.Sent + m.cfg.RetryPeriod
		if err != nil || r.Incarnation == "" || now >= r.Sent+m.cfg.RenewDeadline {
			return // not led: the next read finds the Lease ours and acquires it again
		}
		e.held, e.renewed, e.tried = true, r.Sent, false
		e.term = contract.Term{Incarnation: r.Incarnation, Version: version}
	case r.Kind == Renew:
		e.due = now // perhaps to give it back
		if e.held {
			e.renewed, e.due = r.Sent, r.Sent+m.cfg.RetryPeriod
		}
	case r.Kind == Release:
		e.due = now + m.jitter(m.cfg.RetryPeriod)
	}
	if r.Kind == Release && r.Outcome != Conflict {
		e.tried = true
	}
}

// noticed takes what a watch showed. It is as good as a read, unless a request is under way that may have changed it.
func (e *election) noticed(now time.Duration, r Record) {
	e.shown = now
	if r.older(e.record) {
		return
	}
	e.observe(now, r)
	e.read = !e.busy
}

// sighting is what was last seen of a Lease, times on this machine's clock.
type sighting struct {
	record  Record
	changed time.Duration // when a change of record was last seen
	renews  bool          // and that was its holder's renewal: the holder lives
	shown   time.Duration // when a watch last showed it
}

func (s *sighting) observe(now time.Duration, r Record) {
	if r.older(s.record) {
		return
	}
	if r.changed(s.record) {
		s.changed, s.renews = now, s.record.Exists && r.Exists && r.Holder == s.record.Holder
	}
	s.record = r
}

// judge ends a leadership that may not go on and returns why.
func (e *election) judge(m *self, in Input) (reason string) {
	e.able(in)
	switch {
	case !e.held:
		return ""
	case e.record.Holder != m.cfg.Identity:
		reason = "the election lease is another hub's, or gone"
	case in.Now >= e.renewed+m.cfg.RenewDeadline:
		reason = "the election lease could not be renewed"
	case in.Stop:
		reason = "stops"
	case !in.Coordinator:
		reason = "the coordinator is not healthy"
	case !in.Cloud:
		reason = "the cloud is not healthy"
	case in.Silent:
		// Probes will report whether the cloud is away, but they take longer than a peer that reaches it should have to wait.
		reason = "nothing comes from the cloud"
	case e.unable != 0 && in.Now >= e.gives(m):
		reason = "cannot feed all that the pool wants"
		e.vain++
		e.barred = in.Now + e.courtesy(m) + 2*m.cfg.RetryPeriod // longer than anybody else
	default:
		return ""
	}
	e.held, e.led, e.ended, e.due = false, true, in.Now, in.Now
	return reason
}

// able notes whether a leader feeds the pool.
func (e *election) able(in Input) {
	switch {
	case !e.held || !in.Unable:
		e.unable = 0
	case e.unable == 0:
		e.unable = max(in.Now, 1)
	}
	if e.held && in.Fresh && !in.Unable {
		e.vain = 0
	}
}

// gives is when a leader makes way that is not able to feed the pool, 0 for one that is. Perhaps nobody is. So each
// time that it was in vain it waits four times as long, and the Lease does not go round.
func (e *election) gives(m *self) time.Duration {
	if e.unable == 0 {
		return 0
	}
	return e.unable + m.cfg.SyncDuration/2<<(2*min(e.vain, 3))
}

// courtesy is for how long one that has led in vain leaves a free Lease to others. They look at it each RetryPeriod or
// sooner.
func (e *election) courtesy(m *self) time.Duration {
	return time.Duration(1+min(e.vain, 3)) * m.cfg.RetryPeriod
}

// lingers is until when a hub that led stays at its source: often it leads again a moment later, under a new term.
func (e *election) lingers(m *self) time.Duration {
	if e.held || !e.led {
		return 0
	}
	return e.ended + m.cfg.RetryPeriod
}

// lost tells that another hub holds the Lease.
func (e *election) lost(m *self) bool {
	return e.record.Exists && e.record.Holder != "" && e.record.Holder != m.cfg.Identity && !e.inherits(m)
}

// inherits tells that the Lease is one that this hub held before it was started again, and that it may go on with. A
// pool whose cache is ready has time, and others in it have newer state than a disk. A former machine that is seen to
// renew has not ended: it runs on another computer, which was copied.
func (e *election) inherits(m *self) bool {
	return m.unready && e.former(m) && !e.renews
}

// former tells that the Lease is that of the machine before.
func (e *election) former(m *self) bool {
	return m.cfg.Former != "" && e.record.Holder == m.cfg.Former
}

// eligible reports whether the hub may lead.
func (e *election) eligible(in Input) bool {
	return in.Coordinator && in.Cloud && !in.Silent && !in.Unproven && !in.Stop && in.Now >= e.barred &&
		(e.held || !in.Unable)
}

// next is the request due, if there is one.
func (e *election) next(m *self, in Input) (Action, bool) {
	read := e.read
	e.read = false
	eligible := e.eligible(in)
	if eligible && !e.could {
		e.due = min(e.due, in.Now)
	}
	e.could = eligible
	if in.Coordinator && !e.reached {
		e.since = in.Now
	}
	e.reached = in.Coordinator
	if e.busy || !in.Coordinator {
		return Action{}, false
	}
	release := !e.held && !eligible && e.record.Holder == m.cfg.Identity && (!in.Stop || !e.tried)
	switch {
	case e.held && !e.reread && in.Now >= e.due:
		return e.send(Renew, e.lease(m))
	case release && !e.reread && in.Now >= e.due:
		lease := e.lease(m)
		lease.Holder, lease.Duration = "", time.Second
		return e.send(Release, lease)
	case in.Stop && !release:
		return Action{}, false
	case !e.held && read && eligible && e.free(m, in.Now) && in.Now >= e.yields(m, in):
		return e.send(Acquire, e.lease(m))
	case read && !e.held:
		e.due = in.Now + m.jitter(m.cfg.RetryPeriod)
		if eligible && e.former(m) { // whether the cache is ready will be known soon
			e.due = in.Now + m.jitter(m.cfg.eager())
		}
		for _, until := range []time.Duration{e.changed + e.duration(m), e.yields(m, in)} {
			if eligible && until > in.Now {
				e.due = min(e.due, until)
			}
		}
	case in.Now >= e.due:
		return e.send(ReadElection, Record{})
	}
	return Action{}, false
}

func (e *election) send(k Kind, lease Record) (Action, bool) {
	e.busy = true
	return Action{Kind: k, Lease: lease}, true
}

// yields is until when a hub leaves a Lease alone that it may take. One that has led in vain lets the others try. One
// that is not fed from the cloud leaves alone what is gone, or has expired while the coordinator was away: whoever led
// has open streams from the cloud. That hub may go on without a byte, another one has to open its own. What a disk held
// is older than what others hold: who has nothing newer comes last, and then reads from the pool what it missed.
func (e *election) yields(m *self, in Input) time.Duration {
	switch {
	case e.vain > 0:
		return e.changed + e.courtesy(m)
	case !in.Have, m.snap.Source == Cloud:
		return 0
	case in.Restored && (!e.record.Exists || e.lost(m)):
		return max(e.changed, e.since) + 2*m.cfg.RetryPeriod
	case !e.record.Exists:
		return e.changed + m.cfg.RetryPeriod
	case e.lost(m):
		return e.since + m.cfg.RetryPeriod
	}
	return 0
}

// free reports whether the Lease may be taken.
func (e *election) free(m *self, now time.Duration) bool {
	return !e.record.Exists || e.record.Holder == "" || e.record.Holder == m.cfg.Identity || e.inherits(m) ||
		now >= e.changed+e.duration(m)
}

func (e *election) duration(m *self) time.Duration {
	if e.record.Duration > 0 {
		return min(e.record.Duration, maxStretch*m.cfg.LeaseDuration)
	}
	return m.cfg.LeaseDuration
}

// lease is what this machine writes to hold the Lease.
func (e *election) lease(m *self) Record {
	lease := e.record
	if lease.Exists && lease.Holder != m.cfg.Identity {
		lease.Transitions++
	}
	lease.Holder, lease.Duration = m.cfg.Identity, m.cfg.LeaseDuration
	return lease
}

// given tells, while stopping, that the Lease is given back or cannot be.
func (e *election) given(m *self, in Input) bool {
	return !e.held && (!in.Coordinator || !e.busy && (e.tried || e.record.Holder != m.cfg.Identity))
}
