package hub

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
)

const (
	refillLook   = 2 * time.Second // how often a hub without the cloud looks what the coordinator has, at most; at least half as often
	refillAsk    = 2 * time.Second // for an answer to that
	refillOffer  = time.Minute     // for an offer
	refillSpread = 3 * time.Second // behind the first look, in which the hubs of a pool begin: one is often enough, and a leader is sooner there
)

// refill offers the coordinator what the relays hold, if it has less, while nobody leads because no hub reaches the cloud. So a coordinator that
// lost its disk has the newest state that any hub holds, and hubs that lost theirs read it there. The coordinator takes no offer that is not
// newer than what it has.
type refill struct {
	relays      []*relay.Relay
	coordinator *coordinator
	alone       func() bool // the coordinator can be reached, and the cloud cannot
	clock       clock.WithTicker
	logger      *slog.Logger
	metrics     *metrics
}

// alone tells whether the hub knows nobody who hears from the cloud.
func (p *pool) alone() bool {
	return p.checker.ok() && !p.cloudOK() && p.snapshot().Role != role.Leader
}

// run looks until ctx ends.
func (f *refill) run(ctx context.Context) error {
	var due time.Time // when to begin; zero: not alone
	for ctx.Err() == nil {
		sleep(ctx, f.clock, refillLook+rand.N(refillLook))
		switch {
		case !f.alone():
			due = time.Time{}
		case due.IsZero():
			due = f.clock.Now().Add(rand.N(refillSpread))
		case !f.clock.Now().Before(due):
			for _, r := range f.coordinator.replicas {
				f.look(ctx, r)
			}
		}
	}
	return nil
}

// look offers one replica of the coordinator what it lacks.
func (f *refill) look(ctx context.Context, to *replica) {
	asking, cancel := context.WithTimeout(ctx, refillAsk)
	s, err := to.status(asking)
	cancel()
	if err != nil {
		return
	}
	for _, r := range f.relays {
		st := r.Status()
		if reached, lacks := s.lacks(r.Resource().String(), st.History.Number, st.Version); lacks && st.Synced && st.Denied == "" {
			f.offer(ctx, r, reached, to)
		}
	}
}

// lacks tells whether nobody feeds a resource and it is not at a version of a history, and which version it has reached.
func (s *poolStatus) lacks(resource string, history, version uint64) (reached uint64, lacks bool) {
	for _, r := range s.Resources {
		if r.Resource == resource {
			return r.Version, !r.Ready && r.Feeder == "" && (!r.Synced || r.History == history && r.Version < version)
		}
	}
	return 0, false
}

func (f *refill) offer(ctx context.Context, r *relay.Relay, reached uint64, to *replica) {
	ctx, cancel := context.WithTimeout(ctx, refillOffer)
	defer cancel()
	name, version := r.Resource().String(), r.Status().Version
	err := source.Offer(ctx, r, reached, to.upstream)
	outcome := "taken"
	var refused *source.RefusedError
	switch {
	case errors.As(err, &refused):
		outcome = "refused"
	case err != nil:
		outcome = "failed"
	}
	f.metrics.offers.WithLabelValues(name, outcome).Inc()
	f.logger.Info("offered what this hub holds: the cloud is away and nobody feeds the coordinator", "server", to.url.Host, "resource", name, "version", version,
		"outcome", outcome, "err", err)
}
