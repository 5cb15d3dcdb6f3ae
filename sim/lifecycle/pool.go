package lifecycle

import (
	"context"
	"net/http"
	"net/url"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/heartbeat"
	hubs "github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/sim/lifecycle/api"
)

// pool is a pool of nodes with its coordinator and its election. The World's lock guards it.
type pool struct {
	w     *World
	name  string
	nodes []*node

	// The coordinator.
	away        int // how many faults hold it down
	coordinator *api.Server
	desk        *exchange.RollCall // of its roll call

	leader *node             // nil: there is none
	key    *pki.Authority    // by which weir-manager signs
	lies   int               // how many faults let the leader lie about who was heard
	hoard  []heartbeat.Entry // what it has kept for that
}

func newPool(w *World, name string) (*pool, error) {
	key, err := pki.NewPoolAuthority(name, time.Now())
	return &pool{w: w, name: name, coordinator: api.New(api.Config{}), desk: &exchange.RollCall{}, key: key}, err
}

func (p *pool) up() bool { return p.away == 0 }

// hold lets a fault hold the coordinator down, or no longer: its watches end, and all that it has may be lost.
func (p *pool) hold(by int, lost bool) {
	p.away += by
	p.desk = &exchange.RollCall{}
	if p.coordinator.Away(!p.up()); by > 0 && lost {
		p.coordinator = api.New(api.Config{})
		p.coordinator.Away(true)
	}
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

// seen is the coordinator of a pool as a hub reaches it. It implements beat.Coordinator.
type seen struct{ *hubs.Replica }

func (p *pool) seen(by *node) seen {
	at, t := &url.URL{Scheme: "pool", Host: p.name}, &http.Transport{}
	t.RegisterProtocol(at.Scheme, &link{p.w, by.toPool, func() http.RoundTripper {
		return p.coordinator.As(by.name).Transport
	}})
	return seen{&hubs.Replica{
		Server: hubs.Server{URL: at}, Transport: uplink.NewTransport(func() *http.Transport { return t }),
	}}
}

// With implements beat.Coordinator.
func (s seen) With(ctx context.Context) (*hubs.Replica, context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	return s.Replica, ctx, cancel
}

// SetAddress implements beat.Coordinator.
func (seen) SetAddress(*coordinationv1.Lease) {}
