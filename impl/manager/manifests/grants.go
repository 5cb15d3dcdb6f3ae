package manifests

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/process"
)

const (
	// Soonest is after what time is looked first whether something may be read now, and after each Wake. From then on
	// each wait is twice as long as the one before.
	Soonest = time.Second
	// Rarest is the longest wait. What no Wake tells of is noticed after that.
	Rarest = 5 * time.Minute
)

// Gate lets parts of weir-manager wait for what the cluster does not have yet, or does not grant. A quiet cluster is
// hardly asked: whoever sees that something changed wakes those who wait. It is safe for concurrent use.
type Gate struct {
	clock clock.WithTicker
	log   *slog.Logger

	mu    sync.Mutex
	woken chan struct{} // closed by the next Wake
}

// NewGate returns a Gate at which nobody waits.
func NewGate(c clock.WithTicker, log *slog.Logger) *Gate {
	return &Gate{clock: c, log: log, woken: make(chan struct{})}
}

// Wake has all who wait look again soon. It never blocks.
func (g *Gate) Wake() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.woken)
	g.woken = make(chan struct{})
}

func (g *Gate) next() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.woken
}

// Granted waits until check finds nothing that lacks. It tells once what waits and for what. False: the context ended
// before.
func (g *Gate) Granted(ctx context.Context, what string, check func(context.Context) error) bool {
	wait := Soonest
	for told := false; ; told = true {
		woken := g.next() // what changes while it is looked counts
		err := check(ctx)
		if err == nil {
			return true
		}
		if !told && ctx.Err() == nil {
			g.log.Error("something waits for its grants: apply the output of weir-manager --print-manifests", "what", what,
				"err", err)
		}
		timer := g.clock.NewTimer(wait)
		select {
		case <-timer.C():
			wait = min(2*wait, Rarest)
		case <-woken: // what is new has effect a moment later, and seldom comes alone
			timer.Stop()
			wait = Soonest
			process.Pause(ctx, g.clock, Soonest)
		case <-ctx.Done():
			timer.Stop()
			return false
		}
	}
}

// Listed is a check that a kind may be listed.
func Listed(r client.Reader, all client.ObjectList, options ...client.ListOption) func(context.Context) error {
	return func(ctx context.Context) error { return r.List(ctx, all, append(options, client.Limit(1))...) }
}

// Each is a check that all checks pass. They are made in order, and none after one that fails.
func Each(checks ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, check := range checks {
			if err := check(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}
