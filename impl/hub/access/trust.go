package access

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/limit"
)

// trust is an unknown token that requests carry unasked.
type trust struct {
	underway int
	left     int           // requests that were left before their answer: what they asked may still reach the cloud
	until    time.Time     // so long the latter count
	changed  chan struct{} // closed when less is under way
}

// trusting are the tokens that nobody was asked about.
type trusting struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	tokens map[digest]trust
}

// begin lets a request with an unknown token pass unasked, if there are few such tokens, and few requests with this
// one. end has to be called when it is over. If others with the same token are under way, wait is closed when it is
// worth to look again.
func (x *trusting) begin(d digest) (ok bool, wait <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.clock.Now()
	t, known := x.tokens[d]
	if !known && len(x.tokens) >= limit.MaxTrusting {
		maps.DeleteFunc(x.tokens, func(_ digest, t trust) bool { return t.underway == 0 && !now.Before(t.until) })
		if len(x.tokens) >= limit.MaxTrusting {
			return false, nil
		}
	}
	if !now.Before(t.until) {
		t.left = 0
	}
	switch {
	case t.left+t.underway < limit.MaxTrusted:
	case t.underway > 0:
		return false, t.changed
	default:
		return false, nil
	}
	if t.changed == nil {
		t.changed = make(chan struct{})
	}
	t.underway++
	x.tokens[d] = t
	return true, nil
}

// end ends what begin began. A request that was left before its answer ~stays valid for a while: the cloud may still
// get it, and end the connection that it comes over.
func (x *trusting) end(d digest, answered bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.tokens[d]
	t.underway--
	close(t.changed)
	t.changed = make(chan struct{})
	if !answered {
		t.left++
		t.until = x.clock.Now().Add(limit.TrustTime)
	}
	if t.underway == 0 && t.left == 0 {
		delete(x.tokens, d)
		return
	}
	x.tokens[d] = t
}
