package runner

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// deed is a fault with its target found.
type deed struct {
	scenario.Aim
	scenario.Going
}

// A run is the laboratory of all kinds that happen where clients list and watch.
var _ interface {
	scenario.Lab
	scenario.Liars
	scenario.Forgers
	scenario.Thieves
	scenario.Restorer
	scenario.Grid
	scenario.Objects
	scenario.Movers
	scenario.Rotators
	scenario.Placers
} = (*run)(nil)

// find finds out what a fault means now.
func (r *run) find(ctx context.Context, f scenario.Fault) (*deed, error) {
	d := &deed{Aim: scenario.Aim{Fault: f, Pool: r.s.PoolOf(f), Seed: r.s.Seed}}
	return d, f.Kind.Aim(ctx, r, &d.Aim)
}

// Find implements scenario.Lab.
func (r *run) Find(ctx context.Context, at *scenario.Aim) (err error) {
	part := runtime.PartID("")
	n, _ := at.Fault.Target.Hub()
	replica, _ := at.Fault.Target.Replica()
	switch {
	case replica > 0:
		part = runtime.ReplicaOf(at.Pool.Name, replica)
	case n > 0:
		at.Node = nodesOf(at.Pool)[n-1]
	case at.Fault.Target == scenario.Leader:
		at.Leader, err = r.leader(ctx, at.Pool)
		at.Node = at.Leader
	case at.Fault.Target == scenario.Follower:
		at.Node, err = r.leader(ctx, at.Pool)
		at.Node = r.follower(at.Node, at)
	case at.Fault.Target == scenario.Coordinator:
		part, err = r.fed(ctx, at.Pool)
	case at.Fault.Target == scenario.ControllerManager:
		part = runtime.ControllerManager
	case at.Fault.Target == scenario.Gate:
		part = runtime.Gate
	case at.Fault.Target == scenario.APIServer:
		part, at.CutOff = runtime.APIServer, true
	case at.Fault.Target != scenario.WholePool:
		err = fmt.Errorf("there is no target %s", at.Fault.Target)
	}
	if at.Node != "" {
		part = runtime.HubOf(at.Node)
	}
	at.Part = string(part)
	return err
}

// Part implements scenario.Lab.
func (r *run) Part(at *scenario.Aim) (scenario.Part, error) {
	return r.site.Part(runtime.PartID(at.Part))
}

// Machine implements scenario.Lab: a node is its hub here.
func (r *run) Machine(at *scenario.Aim) (scenario.Part, error) { return r.Part(at) }

// Lines implements scenario.Lab.
func (r *run) Lines(p scenario.Pool, name scenario.LinkName) (all []scenario.Line) {
	for _, l := range r.links(p, name) {
		all = append(all, l)
	}
	return all
}

// Sleep implements scenario.Lab.
func (r *run) Sleep(ctx context.Context, until time.Time) error { return sleep(ctx, time.Until(until)) }

// part is the process that is the target; "": it is none.
func (d *deed) part() runtime.PartID { return runtime.PartID(d.Part) }

// nodesOf are the names of a pool's nodes.
func nodesOf(p scenario.Pool) []string { return p.NodeNames() }

// harms are the pools that the deed is about; none: all.
func (d *deed) harms() []string {
	if slices.Contains([]runtime.PartID{runtime.APIServer, runtime.ControllerManager, runtime.Gate}, d.part()) {
		return nil
	}
	return []string{d.Pool.Name}
}

// name is what a report calls the target.
func (d *deed) name() string {
	switch {
	case d.Part != "":
		return d.Part
	case d.Nodes[0] == "" && d.Fault.Pool != "":
		return "pool " + d.Fault.Pool
	case d.Nodes[0] == "":
		return "pool"
	}
	return d.Nodes[0]
}

// links are those of a pool that a fault names; a machine that vanishes loses both.
func (r *run) links(p scenario.Pool, name scenario.LinkName) []*link.Pool {
	var all []*link.Pool
	if name.Cloud() || name == "" {
		all = append(all, r.site.Link(p.Name))
	}
	if lan := r.site.LAN(p.Name); lan != nil && (name.LAN() || name == "") {
		all = append(all, lan)
	}
	return all
}

// leader waits until somebody leads the pool, by the word of the coordinator and its own, and returns its node.
func (r *run) leader(ctx context.Context, p scenario.Pool) (node string, err error) {
	err = r.until(ctx, leaderPatience, func() (bool, string) {
		var s status
		if node, s = r.heldBy(ctx, p), (status{}); node == "" {
			return false, "waiting for somebody to lead"
		}
		err := r.ask(ctx, runtime.HubOf(node), &s)
		return err == nil && s.Role == roleLeader, fmt.Sprintf("waiting for %s to lead", node)
	})
	return node, err
}

// heldBy is who holds the election Lease by the word of a coordinator; "": nobody, or none says anything.
func (r *run) heldBy(ctx context.Context, p scenario.Pool) string {
	s, _ := r.poolStatus(ctx, p)
	return s.Leader
}

// coordinators are those of some pools with Weir, of all if none is named.
func (r *run) coordinators(of ...scenario.Pool) (ids []runtime.PartID) {
	for _, p := range layout.WeirPools(r.s) {
		if len(of) == 0 || slices.ContainsFunc(of, func(o scenario.Pool) bool { return o.Name == p.Name }) {
			ids = append(ids, p.CoordinatorIDs()...)
		}
	}
	return ids
}

// poolStatus is what the first coordinator of the pool says that answers.
func (r *run) poolStatus(ctx context.Context, p scenario.Pool) (s status, err error) {
	if layout.Mode(p) == runtime.LeaderHubs {
		return r.ofLeaderHubs(ctx, p), nil
	}
	err = errors.New("there is no coordinator")
	for _, id := range r.coordinators(p) {
		if err = r.ask(ctx, id, &s); err == nil {
			return s, nil
		}
	}
	return status{}, err
}

// fed waits until all coordinators that answer agree which one the leader feeds, and returns that.
func (r *run) fed(ctx context.Context, p scenario.Pool) (id runtime.PartID, err error) {
	all := r.coordinators(p)
	if len(all) == 1 {
		return all[0], nil
	}
	err = r.until(ctx, leaderPatience, func() (bool, string) {
		said := map[string]bool{}
		for _, c := range all {
			var s status
			if r.ask(ctx, c, &s) == nil {
				said[s.Fed] = true
			}
		}
		for fed := range said {
			n, err := strconv.Atoi(fed)
			id = runtime.ReplicaOf(p.Name, n)
			return len(said) == 1 && err == nil, "waiting for a coordinator to be fed"
		}
		return false, "waiting for a coordinator to answer"
	})
	return id, err
}

// each are all parts of the pool, coordinators first if it has any.
func (r *run) each(p scenario.Pool) (targets []scenario.Target) {
	switch n := len(r.coordinators(p)); n {
	case 0:
	case 1:
		targets = []scenario.Target{scenario.Coordinator}
	default:
		for i := range n {
			targets = append(targets, scenario.Replica(i+1))
		}
	}
	for i := range p.Nodes {
		targets = append(targets, scenario.Hub(i+1))
	}
	return targets
}

// follower is one that does not lead; the seed decides which.
func (r *run) follower(leader string, at *scenario.Aim) string {
	others := slices.DeleteFunc(nodesOf(at.Pool), func(n string) bool { return n == leader })
	if len(others) == 0 {
		return leader
	}
	random := rand.New(rand.NewPCG(uint64(at.Seed), uint64(at.Fault.At)))
	return others[random.IntN(len(others))]
}

// ask reads the status of a part that may not answer.
func (r *run) ask(ctx context.Context, id runtime.PartID, s *status) error {
	p, err := r.site.Part(id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	return p.Status(ctx, s)
}

// steady reports whether the pool is as it should be: all parts run and answer, one leads, all caches are there and
// fresh.
func (r *run) steady(ctx context.Context) (bool, string) {
	var bad []string
	for _, id := range r.site.Parts() {
		p, err := r.site.Part(id)
		if err != nil || !p.Running() {
			bad = append(bad, string(id)+" does not run")
			continue
		}
		// which say nothing of themselves.
		if slices.Contains([]runtime.PartID{runtime.APIServer, runtime.Manager, runtime.ControllerManager,
			runtime.Scheduler, runtime.Gate}, id) {
			continue
		}
		var s status
		if err := r.ask(ctx, id, &s); err != nil {
			bad = append(bad, string(id)+" does not answer")
			continue
		}
		if id.Kind() == "coordinator" && s.Leader == "" {
			bad = append(bad, "nobody leads "+id.Of())
		}
		for _, res := range s.Resources {
			if !res.Synced || id.Kind() == "coordinator" && !res.Ready {
				bad = append(bad, fmt.Sprintf("%s has no fresh %s", id, res.Resource))
			}
		}
	}
	return len(bad) == 0, strings.Join(bad, ", ")
}

// proveHealed waits until nothing is left of any fault.
func (r *run) proveHealed(ctx context.Context) error {
	if len(r.s.Faults) == 0 {
		return nil
	}
	for _, p := range r.s.Topology.Pools() {
		for _, l := range r.links(p, scenario.BothLinks) {
			if cuts := l.Cuts(); len(cuts) > 0 {
				return fmt.Errorf("faults are over, and of link %s is still cut: %v", l.Name(), cuts)
			}
			if left := l.Toxics(); len(left) > 0 {
				return fmt.Errorf("faults are over, and on link %s is still %s", l.Name(), strings.Join(left, ", "))
			}
		}
		u, l := p.Uplink, r.site.Link(p.Name)
		if l.Rate(link.Up) != int64(u.Up) || l.Rate(link.Down) != int64(u.Down) || l.RTT() != u.RTT {
			return fmt.Errorf("faults are over, and link %s is still slow: %d bit/s up, %d down, round trip %v", l.Name(),
				l.Rate(link.Up), l.Rate(link.Down), l.RTT())
		}
	}
	if err := r.until(ctx, settlePatience, func() (bool, string) { return r.steady(ctx) }); err != nil {
		return errors.Join(errors.New("faults are over, and the pool is not as before"), err)
	}
	return nil
}
