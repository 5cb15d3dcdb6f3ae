package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// movePatience is for weir-manager to notice, and for all to be at the new place.
const movePatience = 4 * time.Minute

// moves are what became of coordinators that were placed again.
type moves struct {
	longest time.Duration
	off     []string // nodes that lost their power
}

// moved is one of them.
type moved struct {
	from  []string // nodes of the replicas
	out   string   // the one that moves, or whose machine loses its power
	began time.Time
}

func (r *run) placing() (runtime.Placing, error) {
	p, ok := r.site.(runtime.Placing)
	if !ok {
		return nil, errors.New("this runtime places no coordinators")
	}
	return p, nil
}

// findPlaced finds the replica that moves: that which the leader feeds.
func (r *run) findPlaced(ctx context.Context, d *deed) error {
	site, err := r.placing()
	if err != nil {
		return err
	}
	var from []string
	err = r.until(ctx, settlePatience, func() (ready bool, why string) {
		from, ready, err = site.Placed(ctx, d.pool.Name)
		return ready && err == nil, fmt.Sprintf("waiting for the coordinator of %s to be placed: %v", d.pool.Name, err)
	})
	if err != nil {
		return err
	}
	d.moved, d.part = &moved{from: from, out: from[0]}, r.coordinators(d.pool)[0]
	if d.fault.Action == scenario.PowerOff {
		d.hubs = []string{d.moved.out}
	}
	return nil
}

// displace lets a coordinator go elsewhere.
func (r *run) displace(ctx context.Context, d *deed) error {
	site, err := r.placing()
	if err != nil {
		return err
	}
	d.moved.began = time.Now()
	if d.fault.Action == scenario.PowerOff {
		r.outages.mu.Lock()
		r.moves.off = append(r.moves.off, d.moved.out)
		r.outages.mu.Unlock()
		return site.LosePower(d.moved.out)
	}
	all := nodesOf(d.pool)
	i := slices.Index(all, d.moved.out) // those behind it come first
	others := slices.Concat(slices.DeleteFunc(slices.Clone(d.moved.from), func(n string) bool { return n == d.moved.out }),
		all[i+1:], all[:i])
	return site.Place(ctx, d.pool.Name, unique(others))
}

func unique(names []string) (once []string) {
	for _, n := range names {
		if !slices.Contains(once, n) {
			once = append(once, n)
		}
	}
	return once
}

// displaced waits until a coordinator is elsewhere, all hubs are there, and the one before is gone.
func (r *run) displaced(ctx context.Context, d *deed) error {
	site, err := r.placing()
	if err != nil {
		return err
	}
	off := d.fault.Action == scenario.PowerOff
	if cut := r.site.Link(d.pool.Name).Cuts(); off && len(cut) > 0 { // the cloud cannot move it: it starts where it was
		r.down(d.hubs)
		return site.Power(ctx, d.moved.out)
	}
	var to []string
	err = r.until(ctx, movePatience, func() (ready bool, why string) {
		to, ready, err = site.Placed(ctx, d.pool.Name)
		if err != nil || !ready || slices.Contains(to, d.moved.out) {
			return false, fmt.Sprintf("waiting for the coordinator of %s to be elsewhere than on %s: it is on %v, ready: %v, %v",
				d.pool.Name, d.moved.out, to, ready, err)
		}
		return r.readThere(ctx, d)
	})
	if err != nil {
		return err
	}
	took := time.Since(d.moved.began)
	r.Progress(fmt.Sprintf("the coordinator of %s is on %v, and all hubs are there, %.1f s after it was to leave %s",
		d.pool.Name, to, took.Seconds(), d.moved.out))
	r.outages.mu.Lock()
	r.moves.longest = max(r.moves.longest, took)
	r.outages.mu.Unlock()
	if off {
		r.down(d.hubs)
		if err := site.Power(ctx, d.moved.out); err != nil {
			return err
		}
	}
	return r.until(ctx, movePatience, func() (bool, string) {
		return !site.Runs(d.moved.out), "waiting for the coordinator of before on " + d.moved.out + " to go"
	})
}

// readThere reports whether the coordinator, where it is now, knows a leader and is fresh, and all hubs read it.
func (r *run) readThere(ctx context.Context, d *deed) (bool, string) {
	for _, id := range r.coordinators(d.pool) {
		var s status
		if err := r.ask(ctx, id, &s); err != nil || s.Leader == "" {
			return false, fmt.Sprintf("waiting for a leader at %s: %v", id, err)
		}
		for _, res := range s.Resources {
			if !res.Ready {
				return false, fmt.Sprintf("waiting for fresh %s of %s", res.Resource, id)
			}
		}
	}
	site, err := r.placing()
	if err != nil {
		return false, err.Error()
	}
	servers, err := site.PlacedAt(ctx, d.pool.Name)
	if err != nil {
		return false, err.Error()
	}
	for _, n := range nodesOf(d.pool) {
		if slices.Contains(d.hubs, n) {
			continue
		}
		var s status
		if err := r.ask(ctx, runtime.HubOf(n), &s); err != nil || !slices.Contains(servers, "https://"+s.Coordinator.Server) {
			return false, fmt.Sprintf("waiting for the hub of %s to be at %v: it is at %s, %v", n, servers, s.Coordinator.Server,
				err)
		}
	}
	return true, ""
}

// hubProcesses are those that run, by node.
func (r *run) hubProcesses() map[string]<-chan struct{} {
	all := map[string]<-chan struct{}{}
	for _, n := range r.weir().nodes {
		if p, err := r.site.Part(runtime.HubOf(n)); err == nil {
			all[n] = p.Done()
		}
	}
	return all
}

// addMovedClients tells what became of clients, when they are judged.
func (r *run) addMovedClients() {
	if !r.s.Places() {
		return
	}
	relists := 0
	for _, x := range r.weir().streams {
		if !slices.Contains(r.moves.off, x.node) {
			relists += x.verdict.Relists
		}
	}
	r.metrics["moved_relists"] = float64(relists)
}

// addMoves tells what became of hubs.
func (r *run) addMoves() {
	if !r.s.Places() {
		return
	}
	restarts := 0
	for n, is := range r.hubProcesses() {
		if is != r.hubs[n] && !slices.Contains(r.moves.off, n) {
			restarts++
		}
	}
	r.metrics["hub_restarts"], r.metrics["moved_seconds_max"] = float64(restarts), r.moves.longest.Seconds()
}
