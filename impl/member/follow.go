package member

import (
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

const (
	// pulseReturn is how long a hub whose connection broke has to accept another one, if this process got to run in time
	// lately.
	pulseReturn = 250 * time.Millisecond
	// PulseRetry is between two tries.
	PulseRetry = 50 * time.Millisecond
	// PulseAwaited is how long the leader of before a start has: a machine that starts has much to do.
	PulseAwaited = 2 * contract.PulseSilence
)

// Follow decides when a coordinator takes the election Lease from the leader whose hub it reads: when it cannot hold a
// connection to that hub (see package lead). It is for one leader, and for one goroutine.
type Follow struct {
	broken bool      // there was a connection
	due    time.Time // until then the hub has time
}

// NewFollow begins to read a leader, whose hub has so long to accept a connection.
func NewFollow(now time.Time, patience time.Duration) *Follow { return &Follow{due: now.Add(patience)} }

// Pulse is how a try to hold a connection to the leader's hub ended.
type Pulse struct {
	Now     time.Time
	Beat    bool          // the hub had answered on it
	Refused bool          // nobody listens at its address
	Late    time.Duration // how late this process got to run lately: who has no processor must not call another silent
}

// Lasts is how long a try may go without an answer.
func (f *Follow) Lasts(now time.Time) time.Duration { return max(f.due.Sub(now), PulseRetry) }

// Ended takes how a try ended, and reports whether the Lease is to be taken from the leader now. Else, and if that
// fails, the next try follows after PulseRetry.
func (f *Follow) Ended(p Pulse) (release bool) {
	switch {
	case p.Beat:
		f.broken, f.due = true, p.Now.Add(pulseReturn+min(2*p.Late, contract.PulseSilence))
	case f.broken && p.Refused: // nobody listens any more: its process is gone
		f.due = p.Now
	}
	if p.Now.Before(f.due) {
		return false
	}
	f.due = p.Now.Add(contract.PulseSilence)
	return true
}

// Reason is why the Lease is taken.
func (f *Follow) Reason() string {
	if f.broken {
		return "broken"
	}
	return "unreachable"
}

// Bars reports whether the leader is barred from the Lease for a while: no connection to its hub ever came to be.
func (f *Follow) Bars() bool { return !f.broken }
