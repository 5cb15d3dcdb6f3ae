package relayed

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
)

const (
	// waitWritten is how long a read waits for the relay, as long as kube-apiserver lets a read wait for its cache.
	waitWritten = 3 * time.Second
	// askAgain is how long nobody asks how old a relay is after the cloud did not answer that.
	askAgain = 5 * time.Second
)

// vintage is how old what a relay holds is, as far as this hub knows: by what the relay hears from its source, or since
// the cloud was asked for its version, and the relay has reached that.
type vintage struct {
	relay *relay.Relay
	clock clock.PassiveClock
	max   time.Duration // that is shown while the cloud is there; 0: no limit

	mu     sync.Mutex
	last   *question // that was answered
	next   *question // that is under way; nil: none
	failed time.Time // when the cloud did not answer
}

// question is one for the version that the cloud is at.
type question struct {
	last    time.Time // when the one before began
	began   time.Time
	covers  uint64 // doubts from before it began
	version uint64
	err     error
	done    chan struct{}
}

// asks gives the question that is under way, or begins one.
func (v *vintage) asks(begin func(*question)) *question {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.next == nil {
		v.next = &question{done: make(chan struct{})}
		if v.last != nil {
			v.next.last = v.last.began
		}
		if v.failed.After(v.next.last) {
			v.next.last = v.failed
		}
		begin(v.next)
	}
	return v.next
}

// answered ends a question.
func (v *vintage) answered(q *question) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.next = nil; q.err == nil {
		v.last = q
	} else {
		v.failed = v.clock.Now()
	}
	close(q.done)
}

// age is the time since what the relay holds was known to be all there was; ok is false if it never was.
func (v *vintage) age() (age time.Duration, ok bool) {
	s, now := v.relay.Status(), v.clock.Now()
	age, ok = s.Age(now)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last != nil && s.Version >= v.last.version {
		if since := now.Sub(v.last.began); !ok || since < age {
			return since, true
		}
	}
	return age, ok
}

// old reports whether a read with unset version may not show this. What comes from a disk is old until something proves
// the contrary: a client may have seen more before this hub started.
func (v *vintage) old() bool {
	if v.max == 0 {
		return false
	}
	s := v.relay.Status()
	if s.Fresh(v.clock.Now(), v.max) {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last == nil || s.Version < v.last.version || v.clock.Since(v.last.began) > v.max
}

// asked reports whether the cloud has said lately at which version it is.
func (v *vintage) asked() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.last != nil && v.clock.Since(v.last.began) <= v.max
}

// lags reports whether the relay has had its time to reach the version that the cloud told, and has not.
func (v *vintage) lags() bool {
	reached := v.relay.Status().Version
	v.mu.Lock()
	defer v.mu.Unlock()
	since := time.Duration(0)
	if v.last != nil {
		since = v.clock.Since(v.last.began)
	}
	return v.last != nil && reached < v.last.version && since > waitWritten && since <= v.max
}

// worthAsking reports whether the cloud should be asked how old this is.
func (v *vintage) worthAsking() bool {
	if v.asked() {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.failed.IsZero() || v.clock.Since(v.failed) > askAgain
}
