package coordinator

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/fence"
)

// pulseReturn is how long a leader whose pulse broke has to come back.
const pulseReturn = 250 * time.Millisecond

// pulseAwaited is how long the leader of before a start has to send its pulse: it has to notice that the coordinator is there again, and a
// machine that starts has much to do.
const pulseAwaited = 2 * contract.PulseSilence

// pulse hears whether the leader lives. A leader that dies leaves its Lease behind, and others would have to wait for that to
// expire, many seconds, because each renewal is a write to flash. Signs of life over a connection are no writes: it breaks
// at once when the leader's process dies, and falls silent when the machine does. Then the Lease is taken from the leader. Should it live
// all the same, nothing is lost: its feeds are fenced off, and it may stand again.
type pulse struct {
	fence  *fence.Fence
	free   func(ctx context.Context, x *feeding) error // takes the election Lease from its holder
	freed  func(reason string)                         // counts
	clock  clock.WithTicker
	logger *slog.Logger

	mu   sync.Mutex
	last *feeding // heard last
}

// hear takes in one connection's pulse, and frees the Lease if it breaks while the leader holds it, or if asked ends: the certificate of the
// leader has expired.
func (p *pulse) hear(stop, asked context.Context, control *http.ResponseController, body io.Reader, x *feeding) {
	p.mu.Lock()
	p.last = x
	p.mu.Unlock()
	if control.Flush() != nil {
		return
	}
	defer unblock(asked, control)()
	// What is waited for is a read of a socket, so the deadline is the system's.
	reason, buf := "broken", make([]byte, 64)
	for {
		began := p.clock.Now()
		if err := control.SetReadDeadline(time.Now().Add(contract.PulseSilence)); err != nil {
			return
		}
		if asked.Err() != nil { // perhaps before that deadline was set
			break
		}
		if _, err := body.Read(buf); err != nil {
			if p.clock.Since(began) >= contract.PulseSilence {
				reason = "silent"
			}
			break
		}
	}
	t := p.clock.NewTimer(pulseReturn)
	defer t.Stop()
	select {
	case <-t.C():
	case <-stop.Done():
		return
	}
	if p.heard() != x || p.fence.Admit(x.term, x.node) != nil { // it came again, or gave the Lease back
		return
	}
	p.release(stop, x, reason)
}

// heard is whose pulse came last, nil: nobody's.
func (p *pulse) heard() *feeding {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// expect takes the election Lease that a disk held from a leader that sends no pulse: it died while the coordinator was away. Without that the
// others would wait for all of the Lease's duration, which begins anew with a start. Who has written the Lease since the start is alive, and
// may be about to send the first one.
func (p *pulse) expect(ctx context.Context) error {
	t := p.clock.NewTimer(pulseAwaited)
	defer t.Stop()
	select {
	case <-t.C():
	case <-ctx.Done():
		return nil
	}
	node, term, kept := p.fence.Kept()
	if x := p.heard(); kept && (x == nil || x.node != node) {
		p.release(ctx, &feeding{node: node, term: term}, "awaited")
	}
	return nil
}

// release takes the Lease from the holder of a term.
func (p *pulse) release(ctx context.Context, x *feeding, reason string) {
	switch err := p.free(ctx, x); {
	case errors.Is(err, errFedElsewhere):
		p.logger.Info("the leader went to another replica", "node", x.node, "term", x.term.String(), "pulse", reason)
	case err != nil:
		p.logger.Warn("the election lease of a dead leader cannot be freed: others wait until it expires", "node", x.node, "err", err)
	default:
		p.logger.Info("the leader is dead or cut off: its Lease is free", "node", x.node, "term", x.term.String(), "pulse", reason)
		p.freed(reason)
	}
}
