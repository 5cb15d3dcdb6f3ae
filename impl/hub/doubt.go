package hub

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
)

const (
	sampleEvery   = 35 * time.Second // between two samples of what the pool's cache brought; up to sampleSpread more
	sampleSpread  = 10 * time.Second
	sampleConfirm = 10 * time.Second // after which a contradiction is asked about again: who feeds the pool may be about to learn it
	sampleAnswer  = 10 * time.Second // for an answer
)

// doubt compares what the pool's cache brings with the cloud, while this hub reaches both: about once a minute the metadata of one object
// that changed. Whoever leads may lie to the pool; so it is noticed. What is contradicted twice is told, with the leader's node, and the
// pool's cache is left as if it were not fresh, after grace and spread. It is used again when another node leads, or when the cloud no longer
// contradicts, as after a restore of the cloud that the leader has learned.
type doubt struct {
	feeders []*feeder
	cloud   func() *source.Upstream // nil: it cannot be asked
	leader  func() string           // node
	changed func()
	clock   clock.WithTicker
	logger  *slog.Logger
	metrics *metrics

	seen map[string]uint64 // versions that were compared, by resource

	mu      sync.Mutex
	against string // node; "": nobody is doubted
}

// holds tells whether the leader is doubted.
func (d *doubt) holds() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.against != "" && d.against == d.leader()
}

// run compares until ctx ends.
func (d *doubt) run(ctx context.Context) error {
	d.seen = map[string]uint64{}
	for ctx.Err() == nil {
		sleep(ctx, d.clock, sampleEvery+rand.N(sampleSpread))
		for _, f := range d.feeders {
			d.look(ctx, f)
		}
	}
	return nil
}

// look compares one resource, if it comes from the pool.
func (d *doubt) look(ctx context.Context, f *feeder) {
	cloud := d.cloud()
	if cloud == nil || f.Status().Upstream != role.Coordinator.String() {
		return
	}
	var no *source.ContradictionError
	reached, err := d.ask(ctx, func(ctx context.Context) (uint64, error) { return f.Sample(ctx, cloud, d.seen[f.resource]) })
	if err == nil {
		d.seen[f.resource] = reached
	}
	for errors.As(err, &no) && ctx.Err() == nil {
		leader := d.leader()
		sleep(ctx, d.clock, sampleConfirm)
		before := no
		if _, err = d.ask(ctx, func(ctx context.Context) (uint64, error) { return 0, f.Confirm(ctx, cloud, before) }); err == nil {
			d.trust()
			return
		}
		if no = nil; !errors.As(err, &no) || leader != d.leader() || f.Status().Upstream != role.Coordinator.String() {
			return
		}
		d.suspect(f.resource, leader, no)
	}
}

func (d *doubt) ask(ctx context.Context, what func(context.Context) (uint64, error)) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleAnswer)
	defer cancel()
	return what(ctx)
}

// told takes that the cloud contradicted while a relay was being fed from the pool; see source.Config.Doubt.
func (d *doubt) told(resource string, err error) { d.suspect(resource, d.leader(), err) }

// suspect notes that the cloud contradicts what a leader fed.
func (d *doubt) suspect(resource, leader string, proof error) {
	d.metrics.contradictions.WithLabelValues(resource).Inc()
	d.mu.Lock()
	first := d.against != leader
	d.against = leader
	d.mu.Unlock()
	if first && leader != "" {
		d.logger.Error("the cloud contradicts what the leader of the pool feeds: the pool's cache is left unless that changes",
			"leader", leader, "resource", resource, "err", proof)
		d.changed()
	}
}

// trust takes a doubt back.
func (d *doubt) trust() {
	d.mu.Lock()
	was := d.against
	d.against = ""
	d.mu.Unlock()
	if was != "" {
		d.logger.Info("the cloud no longer contradicts the pool's cache", "leader", was)
		d.changed()
	}
}

// leaderNode is the node that held the election Lease when it was last seen.
func (p *pool) leaderNode() string { return contract.NodeOfIdentity(p.snapshot().Leader) }
