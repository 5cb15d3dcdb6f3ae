package lifecycle

import (
	"context"
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/heartbeat"
)

// pool is a pool of nodes with its coordinator and its election. The World's lock guards it.
type pool struct {
	w     *World
	name  string
	nodes []*node

	// The coordinator.
	away    int // how many faults hold it down
	life    int
	version int
	leases  map[string]heartbeat.Lease
	log     []mirrored
	changed chan struct{} // closed and replaced at each change

	leader *node // nil: there is none
}

// mirrored is a change of a Lease in the coordinator.
type mirrored struct {
	node  string
	lease heartbeat.Lease
}

func newPool(w *World, name string) *pool {
	return &pool{w: w, name: name, leases: map[string]heartbeat.Lease{}, changed: make(chan struct{})}
}

func (p *pool) up() bool { return p.away == 0 }

// put writes a Lease if it is at the version given; "" creates it.
func (p *pool) put(node string, l heartbeat.Lease, version string) (heartbeat.Lease, heartbeat.Outcome) {
	switch is, ok := p.leases[node]; {
	case !ok && version != "":
		return heartbeat.Lease{}, heartbeat.Absent
	case is.Version != version:
		return is, heartbeat.Conflict
	}
	p.version++
	l.Version = strconv.Itoa(p.version)
	p.leases[node] = l
	p.log = append(p.log, mirrored{node, l})
	p.tell()
	return l, heartbeat.OK
}

func (p *pool) tell() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// restart begins another life of the coordinator: all watches end.
func (p *pool) restart(empty bool) {
	p.life++
	p.log = nil
	if empty {
		clear(p.leases)
	}
	p.tell()
}

// warm is the age at which a hub has seen the heartbeats of others; a younger one does not stand, since stated budgets
// do not cover that beside a Lease that had to run out.
const warm = 20 * time.Second

// fit reports whether a hub could lead.
func (n *node) fit() bool { return n.hub != nil && n.works() && n.toCloud() && n.toPool() }

// elect finds leaders until the context ends: some seconds after one is gone another one leads, which is soon if the
// pulse of the old one ended and late if its Lease has to run out. The old one may believe for a while that it leads.
func (p *pool) elect(ctx context.Context) {
	for sleep(ctx, 500*time.Millisecond) {
		var wait time.Duration
		p.w.locked(func() {
			if p.leader != nil && p.leader.fit() {
				return
			}
			wait = p.w.span(2*time.Second, 6*time.Second)
			if old := p.leader; old != nil {
				p.w.judge.lost(p)
				p.leader = nil
				h := old.hub
				if h != nil {
					time.AfterFunc(p.w.span(0, 8*time.Second), func() {
						p.w.locked(func() { h.lead(p.leader != nil && p.leader.hub == h) })
					})
				}
				if p.w.rng.IntN(3) == 0 {
					wait = p.w.span(10*time.Second, 17*time.Second)
				}
			}
		})
		if wait == 0 || !sleep(ctx, wait) {
			continue
		}
		p.w.locked(func() {
			var able []*node
			for _, n := range p.nodes {
				if n.fit() && (p.w.now()-n.hub.born > warm || p.w.now() < warmUp) {
					able = append(able, n)
				}
			}
			if len(able) == 0 {
				return
			}
			p.leader = able[p.w.rng.IntN(len(able))]
			p.leader.hub.lead(true)
			p.w.trace("%s leads", p.leader.name)
		})
	}
}
