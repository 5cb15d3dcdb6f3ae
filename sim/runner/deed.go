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

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// deed is a fault with its target found.
type deed struct {
	fault  scenario.Fault
	pool   scenario.Pool
	part   runtime.PartID // "": a link is the target
	nodes  []string       // whose links are cut; "" is the pool
	leader string         // the node that leads when it begins, if the deed is meant for it
	hubs   []string       // nodes whose clients cannot be served while it lasts
	cutOff bool           // nothing reaches the pool from the cloud while it lasts
	disk   scenario.Disk
	node   string       // whose hub or Node is the target
	object *changed     // that Change and Remove are done to
	stolen *stolen      // of a Node that is deleted
	moved  *moved       // of a coordinator that is placed again
	back   func()       // tells that the apiserver, which is the target, is there again
	healed func() error // ends what a Kind began
}

// find finds out what a fault means now.
func (r *run) find(ctx context.Context, f scenario.Fault) (*deed, error) {
	d := &deed{fault: f, pool: r.s.PoolOf(f), disk: f.Disk}
	if f.Action == scenario.RotateAuthority { // nobody is to notice
		d.nodes = []string{""}
		return d, nil
	}
	if n, replica := f.Target.Replica(); replica {
		d.part = runtime.ReplicaOf(d.pool.Name, n)
		return d, nil
	}
	switch n, hub := f.Target.Hub(); {
	case hub:
		d.aim(nodesOf(d.pool)[n-1])
	case f.Target == scenario.Leader:
		leader, err := r.leader(ctx, d.pool)
		if err != nil {
			return nil, err
		}
		d.aim(leader)
		d.leader = leader
	case f.Target == scenario.Follower:
		leader, err := r.leader(ctx, d.pool)
		if err != nil {
			return nil, err
		}
		d.aim(r.follower(leader, d))
	case f.Action == scenario.Place || f.Action == scenario.PowerOff:
		return d, r.findPlaced(ctx, d)
	case f.Target == scenario.Coordinator:
		var err error
		if d.part, err = r.fed(ctx, d.pool); err != nil {
			return nil, err
		}
	case f.Target == scenario.ControllerManager:
		d.part = runtime.ControllerManager
	case f.Target == scenario.Gate:
		d.part = runtime.Gate
	case f.Target == scenario.APIServer:
		d.part, d.cutOff = runtime.APIServer, true
	case f.Target == scenario.WholePool:
		d.nodes = []string{""}
		if f.Action == scenario.Blackout {
			d.fault.Link, d.hubs = scenario.CloudLink, nodesOf(d.pool)
		}
		d.cutOff = d.fault.Link.Cloud() && d.stops()
	default:
		return nil, fmt.Errorf("there is no target %s", f.Target)
	}
	return d, nil
}

// nodesOf are the names of a pool's nodes.
func nodesOf(p scenario.Pool) []string { return p.RuntimePool(p.Mode()).NodeNames() }

// harms are the pools that the deed is about; none: all.
func (d *deed) harms() []string {
	if d.part == runtime.APIServer || d.part == runtime.ControllerManager || d.part == runtime.Gate {
		return nil
	}
	return []string{d.pool.Name}
}

// aim makes a node the target: its hub, or its links.
func (d *deed) aim(node string) {
	d.node = node
	switch d.fault.Action {
	case scenario.Change, scenario.Move:
		d.nodes = []string{node}
	case scenario.Vanish:
		d.nodes, d.part, d.hubs = []string{node}, runtime.HubOf(node), []string{node}
	case scenario.Lie, scenario.Forge:
		d.part = runtime.HubOf(node) // whose clients are served on
	case scenario.DeleteNode:
		d.part, d.hubs = runtime.HubOf(node), []string{node}
		if d.fault.Off > 0 {
			d.nodes, d.cutOff, d.fault.Link = []string{""}, true, scenario.CloudLink
		}
	default:
		if d.fault.Link == "" {
			d.part, d.hubs = runtime.HubOf(node), []string{node}
			return
		}
		d.nodes = []string{node}
		if d.fault.Link == scenario.BothLinks && d.stops() {
			d.hubs = []string{node}
		}
	}
}

// stops reports whether a deed on a link lets nothing cross.
func (d *deed) stops() bool {
	if k := d.fault.Kind; k != nil {
		return k.Stops()
	}
	return d.fault.Action != scenario.Slow
}

// name is what a report calls the target.
func (d *deed) name() string {
	switch {
	case d.part != "":
		return string(d.part)
	case d.nodes[0] == "" && d.fault.Pool != "":
		return "pool " + d.fault.Pool
	case d.nodes[0] == "":
		return "pool"
	}
	return d.nodes[0]
}

// ends reports whether the deed ends a process.
func (d *deed) ends() bool {
	return d.part != "" && !slices.Contains([]scenario.Action{
		scenario.Freeze, scenario.Lie, scenario.Forge, scenario.DeleteNode, scenario.Place, scenario.PowerOff,
	}, d.fault.Action)
}

// begin does it.
func (r *run) begin(ctx context.Context, d *deed) error {
	if d.fault.Action == scenario.RotateAuthority {
		return r.rotate(ctx, d.pool)
	}
	if d.fault.Object != "" {
		return r.changeObject(ctx, d)
	}
	if d.fault.Action == scenario.Move {
		return r.move(ctx, d, d.fault.To)
	}
	if k := d.fault.Kind; k != nil {
		at := scenario.Aim{Nodes: d.nodes, Direction: d.direction()}
		for _, l := range r.links(d.pool, d.fault.Link) {
			at.Lines = append(at.Lines, l)
		}
		var err error
		d.healed, err = k.Begin(at)
		return err
	}
	if d.part == "" {
		return r.strain(d)
	}
	p, err := r.site.Part(d.part)
	if err != nil {
		return err
	}
	if d.ends() {
		r.down(d.hubs)
	}
	switch d.fault.Action {
	case scenario.Freeze:
		return p.Freeze()
	case scenario.Lie:
		return r.lie(ctx, d.pool, d.leader)
	case scenario.Forge:
		return r.forge(ctx, d.pool, d.part.Of())
	case scenario.DeleteNode:
		return r.deleteNode(ctx, d)
	case scenario.Stop, scenario.Restart:
		return p.Stop(ctx)
	case scenario.Place, scenario.PowerOff:
		return r.displace(ctx, d)
	case scenario.Vanish:
		r.cut(d)
	}
	return p.Kill()
}

// heal undoes it.
func (r *run) heal(ctx context.Context, d *deed) error {
	if d.fault.Action == scenario.RotateAuthority {
		return r.rotated(ctx, d.pool)
	}
	if d.fault.Object != "" {
		return r.restoreObject(ctx, d)
	}
	if d.fault.Action == scenario.Move {
		if err := r.move(ctx, d, d.pool.Name); err != nil {
			return err
		}
		return r.until(ctx, settlePatience, func() (bool, string) { return r.hasMoved(ctx, d.node, d.fault.To, d.pool.Name) })
	}
	if d.healed != nil {
		return d.healed()
	}
	if d.part == "" {
		return r.relieve(d)
	}
	p, err := r.site.Part(d.part)
	if err != nil {
		return err
	}
	if d.fault.Action == scenario.Freeze {
		return d.there(p.Thaw())
	}
	if d.fault.Action == scenario.Lie {
		return r.endLie()
	}
	if d.fault.Action == scenario.Forge {
		return nil
	}
	if d.fault.Action == scenario.Place || d.fault.Action == scenario.PowerOff {
		return r.displaced(ctx, d)
	}
	if d.fault.Action == scenario.DeleteNode {
		return r.restoreNode(ctx, d, p)
	}
	if d.fault.Action == scenario.Restore {
		return r.restore(ctx, d, p)
	}
	if d.disk == scenario.LoseDisk {
		if err := p.LoseDisk(); err != nil {
			return err
		}
	}
	if d.fault.Action == scenario.Vanish {
		r.mend(d)
	}
	r.down(d.hubs)
	return d.there(p.Start(ctx))
}

// there lets requests of the testbed go on, unless the target could not be brought back.
func (d *deed) there(err error) error {
	if err == nil && d.back != nil {
		d.back()
	}
	return err
}

// strain cuts or slows a link.
func (r *run) strain(d *deed) error {
	if d.fault.Action != scenario.Slow {
		r.cut(d)
		return nil
	}
	for _, l := range r.links(d.pool, d.fault.Link) {
		if d.fault.Rate != nil {
			l.SetRate(link.Both, int64(*d.fault.Rate))
		}
		if d.fault.RTT != nil {
			l.SetRTT(*d.fault.RTT)
		}
	}
	return nil
}

func (r *run) relieve(d *deed) error {
	if d.fault.Action != scenario.Slow {
		r.mend(d)
		return nil
	}
	if d.fault.Link.Cloud() {
		u, l := d.pool.Uplink, r.site.Link(d.pool.Name)
		l.SetRate(link.Up, int64(u.Up))
		l.SetRate(link.Down, int64(u.Down))
		l.SetRTT(u.RTT)
	}
	if d.fault.Link.LAN() {
		if l := r.site.LAN(d.pool.Name); l != nil {
			l.SetRate(link.Both, 0)
			l.SetRTT(0)
		}
	}
	return nil
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

func (r *run) cut(d *deed) {
	for _, l := range r.links(d.pool, d.fault.Link) {
		for _, n := range d.nodes {
			l.Cut(d.direction(), n)
		}
	}
}

func (r *run) mend(d *deed) {
	for _, l := range r.links(d.pool, d.fault.Link) {
		for _, n := range d.nodes {
			l.Heal(d.direction(), n)
		}
	}
}

func (d *deed) direction() link.Direction {
	if d.fault.Direction == 0 {
		return link.Both
	}
	return d.fault.Direction
}

// flap cuts and heals a link at random times, and leaves it healed.
func (r *run) flap(ctx context.Context, d *deed) error {
	random := rand.New(rand.NewPCG(uint64(r.s.Seed), uint64(d.fault.At)))
	moments := make([]time.Duration, 0, 2*d.fault.Cuts)
	for range 2 * d.fault.Cuts {
		moments = append(moments, time.Duration(random.Float64()*float64(d.fault.For)))
	}
	slices.Sort(moments)
	began := time.Now()
	for i, at := range moments {
		if err := sleep(ctx, time.Until(began.Add(at))); err != nil {
			r.mend(d)
			return err
		}
		if i%2 == 0 {
			r.cut(d)
		} else {
			r.mend(d)
		}
	}
	return nil
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
	for _, p := range r.s.WeirPools() {
		if len(of) == 0 || slices.ContainsFunc(of, func(o scenario.Pool) bool { return o.Name == p.Name }) {
			ids = append(ids, p.CoordinatorIDs()...)
		}
	}
	return ids
}

// poolStatus is what the first coordinator of the pool says that answers.
func (r *run) poolStatus(ctx context.Context, p scenario.Pool) (s status, err error) {
	if p.Mode() == runtime.LeaderHubs {
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
func (r *run) follower(leader string, d *deed) string {
	others := slices.DeleteFunc(nodesOf(d.pool), func(n string) bool { return n == leader })
	if len(others) == 0 {
		return leader
	}
	random := rand.New(rand.NewPCG(uint64(r.s.Seed), uint64(d.fault.At)))
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
