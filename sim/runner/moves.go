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

func (r *run) placing() (runtime.Placing, error) {
	p, ok := r.site.(runtime.Placing)
	if !ok {
		return nil, errors.New("this runtime places no coordinators")
	}
	return p, nil
}

// FindPlaced implements scenario.Placers: it finds the replica that moves.
func (r *run) FindPlaced(ctx context.Context, at *scenario.Aim) error {
	from, err := r.placedAt(ctx, at.Pool)
	if err != nil {
		return err
	}
	at.Node, at.Part = from[0], string(r.coordinators(at.Pool)[0])
	return nil
}

// placedAt waits until the coordinator of a pool is placed, and returns where: first the replica that the leader feeds.
func (r *run) placedAt(ctx context.Context, p scenario.Pool) (nodes []string, err error) {
	site, err := r.placing()
	if err != nil {
		return nil, err
	}
	waited := r.until(ctx, settlePatience, func() (ready bool, why string) {
		nodes, ready, err = site.Placed(ctx, p.Name)
		return ready && err == nil, fmt.Sprintf("waiting for the coordinator of %s to be placed: %v", p.Name, err)
	})
	return nodes, waited
}

// Place implements scenario.Placers.
func (r *run) Place(ctx context.Context, at *scenario.Aim) (scenario.Going, error) {
	site, err := r.placing()
	if err != nil {
		return scenario.Going{}, err
	}
	began := time.Now()
	from, err := r.placedAt(ctx, at.Pool)
	if err != nil {
		return scenario.Going{}, err
	}
	all := nodesOf(at.Pool)
	i := slices.Index(all, at.Node) // those behind it come first
	others := slices.Concat(slices.DeleteFunc(from, func(n string) bool { return n == at.Node }), all[i+1:], all[:i])
	return scenario.Going{Heal: func(ctx context.Context) error {
		if err := r.elsewhere(ctx, at, began); err != nil {
			return err
		}
		return r.leftBy(ctx, site, at.Node)
	}}, site.Place(ctx, at.Pool.Name, unique(others))
}

// PowerOff implements scenario.Placers.
func (r *run) PowerOff(_ context.Context, at *scenario.Aim) (scenario.Going, error) {
	site, err := r.placing()
	if err != nil {
		return scenario.Going{}, err
	}
	began := time.Now()
	r.outages.mu.Lock()
	r.moves.off = append(r.moves.off, at.Node)
	r.outages.mu.Unlock()
	return scenario.Going{Heal: func(ctx context.Context) error {
		cut := len(r.site.Link(at.Pool.Name).Cuts()) > 0 // the cloud cannot move it: it starts where it was
		if !cut {
			if err := r.elsewhere(ctx, at, began); err != nil {
				return err
			}
		}
		r.Lost(at.Silent)
		if err := site.Power(ctx, at.Node); err != nil || cut {
			return err
		}
		return r.leftBy(ctx, site, at.Node)
	}}, site.LosePower(at.Node)
}

func unique(names []string) (once []string) {
	for _, n := range names {
		if !slices.Contains(once, n) {
			once = append(once, n)
		}
	}
	return once
}

// elsewhere waits until a coordinator is on other nodes, and all hubs are there.
func (r *run) elsewhere(ctx context.Context, at *scenario.Aim, began time.Time) error {
	site, err := r.placing()
	if err != nil {
		return err
	}
	var to []string
	err = r.until(ctx, movePatience, func() (ready bool, why string) {
		to, ready, err = site.Placed(ctx, at.Pool.Name)
		if err != nil || !ready || slices.Contains(to, at.Node) {
			return false, fmt.Sprintf("waiting for the coordinator of %s to be elsewhere than on %s: it is on %v, ready: %v, %v",
				at.Pool.Name, at.Node, to, ready, err)
		}
		return r.readThere(ctx, at)
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	r.Progress(fmt.Sprintf("the coordinator of %s is on %v, and all hubs are there, %.1f s after it was to leave %s",
		at.Pool.Name, to, took.Seconds(), at.Node))
	r.outages.mu.Lock()
	r.moves.longest = max(r.moves.longest, took)
	r.outages.mu.Unlock()
	return nil
}

// leftBy waits until the coordinator of before is gone.
func (r *run) leftBy(ctx context.Context, site runtime.Placing, node string) error {
	return r.until(ctx, movePatience, func() (bool, string) {
		return !site.Runs(node), "waiting for the coordinator of before on " + node + " to go"
	})
}

// readThere reports whether the coordinator, where it is now, knows a leader and is fresh, and all hubs read it.
func (r *run) readThere(ctx context.Context, at *scenario.Aim) (bool, string) {
	for _, id := range r.coordinators(at.Pool) {
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
	servers, err := site.PlacedAt(ctx, at.Pool.Name)
	if err != nil {
		return false, err.Error()
	}
	for _, n := range nodesOf(at.Pool) {
		if slices.Contains(at.Silent, n) {
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
