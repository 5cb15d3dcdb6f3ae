package runner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/client"
	"github.com/weir-edge/weir/sim/liar"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
)

// lies are what leaders of the pool forged, and when it was found.
type lies struct {
	mu      sync.Mutex
	told    *liar.Liar
	forged  time.Time
	found   time.Time // by the first hub that said so; zero: not yet
	deposed time.Time // since when another node leads; zero: none has
}

// Lie implements scenario.Liars.
func (r *run) Lie(ctx context.Context, at *scenario.Aim) (scenario.Going, error) {
	return scenario.Going{Heal: r.endLie}, r.lie(ctx, at.Pool, at.Leader)
}

// lie lets somebody with the key of the leader's node lead in its place, and forge.
func (r *run) lie(ctx context.Context, p scenario.Pool, node string) error {
	vault, ok := r.site.(runtime.Vault)
	if !ok {
		return errors.New("this runtime does not give away keys of nodes")
	}
	pool := p.Name
	authority, err := vault.Authority(pool)
	if err != nil {
		return err
	}
	address, err := vault.Coordinator(pool)
	if err != nil {
		return err
	}
	s, err := r.poolStatus(ctx, p)
	if err != nil {
		return err
	}
	c := liar.Config{Pool: pool, Node: node, Authority: authority, Coordinator: address, Cloud: r.site.Admin()}
	for _, res := range s.Resources {
		c.Resources = append(c.Resources, res.Resource)
	}
	l, err := liar.Lead(ctx, c)
	if err != nil {
		return err
	}
	r.lies.mu.Lock()
	r.lies.told = l
	r.lies.mu.Unlock()
	forged, err := l.Forge(ctx)
	if err != nil {
		return err
	}
	r.lies.mu.Lock()
	r.lies.forged = forged
	r.lies.mu.Unlock()
	r.background.Go(func() { r.watchLie(ctx, p, node) })
	return nil
}

// endLie lets the liar go.
func (r *run) endLie(context.Context) error {
	r.lies.mu.Lock()
	l := r.lies.told
	r.lies.told = nil
	r.lies.mu.Unlock()
	if l != nil {
		l.Stop()
	}
	return nil
}

// watchLie notes when the lie is found, and when another node leads, until both are or ctx ends.
func (r *run) watchLie(ctx context.Context, p scenario.Pool, node string) {
	poll := time.NewTicker(tick)
	defer poll.Stop()
	for {
		r.lies.mu.Lock()
		found, deposed := !r.lies.found.IsZero(), !r.lies.deposed.IsZero()
		r.lies.mu.Unlock()
		if found && deposed {
			return
		}
		if !found && r.contradicted(ctx, p) {
			r.lieEvent(&r.lies.found, "found", "")
		}
		if leader := r.heldBy(ctx, p); found && leader != "" && leader != node {
			r.lieEvent(&r.lies.deposed, "deposed", leader)
		}
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		}
	}
}

func (r *run) lieEvent(at *time.Time, what, leader string) {
	r.lies.mu.Lock()
	defer r.lies.mu.Unlock()
	*at = time.Now()
	r.Progress("the lie: " + what + " after " + time.Since(r.lies.forged).Round(time.Second).String() + " " + leader)
	r.time.Emit(timeline.Event{Lane: timeline.Leader, Way: report.WayWeir, Node: leader, Name: "lie " + what})
}

// contradicted reports whether a hub of the pool says that the cloud contradicts the leader.
func (r *run) contradicted(ctx context.Context, p scenario.Pool) bool {
	for _, node := range nodesOf(p) {
		if p, err := r.site.Part(runtime.HubOf(node)); err == nil {
			if m, err := p.Metrics(ctx); err == nil && m.Sum("weir_hub_pool_contradictions_total") > 0 {
				return true
			}
		}
	}
	return false
}

// addLies adds what the lies of leaders cost. Of clients, those count that saw what was forged, and those that show it
// in the end.
func (r *run) addLies() {
	r.lies.mu.Lock()
	defer r.lies.mu.Unlock()
	if r.lies.forged.IsZero() {
		return
	}
	if !r.lies.found.IsZero() {
		r.metrics["lie_found_seconds"] = r.lies.found.Sub(r.lies.forged).Seconds()
	}
	if !r.lies.deposed.IsZero() {
		r.metrics["lie_deposed_seconds"] = r.lies.deposed.Sub(r.lies.forged).Seconds()
	}
	misled, left := map[[2]string]bool{}, map[[2]string]bool{}
	for _, s := range r.weir().streams {
		if s.Spec.Resource != client.EndpointSlices {
			continue
		}
		who := [2]string{s.node, s.Spec.Client}
		if sawForged(s.Recording.Ops()) {
			misled[who] = true
		}
		for _, item := range s.Stored() {
			if isForged(item) {
				left[who] = true
			}
		}
	}
	r.metrics["misled_clients"], r.metrics["misled_clients_left"] = float64(len(misled)), float64(len(left))
}

func sawForged(ops []client.Op) bool {
	for _, op := range ops {
		if isForged(op.Item) {
			return true
		}
		for _, item := range op.Items {
			if isForged(item) {
				return true
			}
		}
	}
	return false
}

func isForged(i client.Item) bool { return strings.HasSuffix(i.Key, "/"+liar.Forged) }
