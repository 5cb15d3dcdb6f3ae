package member

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/hub/feeder"
	"github.com/weir-edge/weir/impl/pause"
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
	*Config
	leader  func() string // node
	changed func()

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
		pause.For(ctx, d.Clock, sampleEvery+rand.N(sampleSpread))
		for _, f := range d.Feeders {
			d.look(ctx, f)
		}
	}
	return nil
}

// look compares one resource, if it comes from the pool.
func (d *doubt) look(ctx context.Context, f *feeder.Feeder) {
	cloud := d.Judge()
	if cloud == nil || f.Status().Upstream != role.Coordinator.String() {
		return
	}
	var no *source.ContradictionError
	reached, err := d.ask(ctx, func(ctx context.Context) (uint64, error) { return f.Sample(ctx, cloud, d.seen[f.Resource]) })
	if err == nil {
		d.seen[f.Resource] = reached
	}
	for errors.As(err, &no) && ctx.Err() == nil {
		leader := d.leader()
		pause.For(ctx, d.Clock, sampleConfirm)
		before := no
		if _, err = d.ask(ctx, func(ctx context.Context) (uint64, error) { return 0, f.Confirm(ctx, cloud, before) }); err == nil {
			d.trust()
			return
		}
		if no = nil; !errors.As(err, &no) || leader != d.leader() || f.Status().Upstream != role.Coordinator.String() {
			return
		}
		d.suspect(f.Resource, leader, no)
	}
}

func (d *doubt) ask(ctx context.Context, what func(context.Context) (uint64, error)) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, sampleAnswer)
	defer cancel()
	return what(ctx)
}

// suspect notes that the cloud contradicts what a leader fed.
func (d *doubt) suspect(resource, leader string, proof error) {
	d.Contradicted(resource)
	d.mu.Lock()
	first := d.against != leader
	d.against = leader
	d.mu.Unlock()
	if first && leader != "" {
		d.Logger.Error("the cloud contradicts what the leader of the pool feeds: the pool's cache is left unless that changes",
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
		d.Logger.Info("the cloud no longer contradicts the pool's cache", "leader", was)
		d.changed()
	}
}
