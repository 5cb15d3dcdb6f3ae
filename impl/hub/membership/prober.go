package membership

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/role"
)

const (
	step     = 5 * time.Second // how often it is looked what is due
	together = 4               // attempts at once
)

// ProberConfig is what a Prober is made of.
type ProberConfig struct {
	Node        string
	Coordinator *coordinator.Client
	Role        func() role.Role
	Told        func() string // where the pool reaches this hub; "": that is not known yet
	Patience    time.Duration // of one attempt; 0: connectivity.Patience
	Clock       clock.WithTicker
	Logger      *slog.Logger
}

// Prober is that of a hub.
type Prober struct {
	ProberConfig
	began time.Time

	mu      sync.Mutex
	plan    connectivity.Plan
	failing digest.Edges
	members []connectivity.Edge // to those that desks told, of the last round
}

// NewProber makes one that has tried nothing.
func NewProber(c ProberConfig) *Prober {
	return &Prober{ProberConfig: c, began: c.Clock.Now(), plan: connectivity.Plan{Node: c.Node}}
}

// Run tries until ctx ends.
func (p *Prober) Run(ctx context.Context) error {
	tick := p.Clock.NewTicker(step)
	defer tick.Stop()
	for {
		select {
		case <-tick.C():
		case <-ctx.Done():
			return nil
		}
		p.look(ctx)
	}
}

// Failing are the edges that fail.
func (p *Prober) Failing() digest.Edges {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failing
}

func (p *Prober) now() time.Duration { return p.Clock.Since(p.began) }

// look tries what is due.
func (p *Prober) look(ctx context.Context) {
	p.mu.Lock()
	p.plan.Follow(p.now(), p.edges())
	due := p.plan.Due(p.now(), p.Role() == role.Pending)
	p.tell()
	p.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(together)
	for _, e := range due {
		g.Go(func() error {
			p.try(ctx, e)
			return nil
		})
	}
	_ = g.Wait()
}

// edges are those that there are now.
func (p *Prober) edges() (all []connectivity.Edge) {
	told := p.Told()
	for _, r := range p.Coordinator.Replicas() {
		all = append(all, edge(r.Server))
		if told != "" {
			all = append(all, connectivity.Edge{Way: digest.FromCoordinator, Peer: cmp.Or(r.Node, r.URL.Hostname()), Host: told})
		}
	}
	for _, e := range p.members {
		if !slices.Contains(all, e) {
			all = append(all, e)
		}
	}
	return all
}

// edge is the way to a server.
func edge(s coordinator.Server) connectivity.Edge {
	if s.Node != "" {
		return connectivity.Edge{Way: digest.ToHub, Peer: s.Node, Host: s.URL.Host}
	}
	return connectivity.Edge{Way: digest.ToCoordinator, Peer: s.URL.Hostname(), Host: s.URL.Host}
}

// server is where an edge leads.
func server(e connectivity.Edge) coordinator.Server {
	s := coordinator.Server{URL: &url.URL{Scheme: "https", Host: e.Host}}
	if e.Way == digest.ToHub {
		s.Node = e.Peer
	}
	return s
}

// attempt tries an edge. The way back is tried from its other end.
func (p *Prober) attempt(ctx context.Context, e connectivity.Edge) (cause string, err error) {
	if e.Way == digest.FromCoordinator {
		return p.back(ctx, e), nil
	}
	stage, err := p.Coordinator.Try(ctx, server(e))
	if err != nil {
		return connectivity.Cause(stage, err), err
	}
	return "", nil
}

// back has this hub called by the replica that an edge comes from. What cannot be asked is no failure of that edge: the
// way there is an edge of its own.
func (p *Prober) back(ctx context.Context, e connectivity.Edge) (cause string) {
	all := p.Coordinator.Replicas()
	i := slices.IndexFunc(all, func(r *coordinator.Replica) bool { return cmp.Or(r.Node, r.URL.Hostname()) == e.Peer })
	if i < 0 {
		return ""
	}
	var a exchange.CallBackAnswer
	ask := exchange.CallBackAsk{Address: e.Host}
	if _, err := all[i].Do(ctx, http.MethodPost, contract.ReachPath, ask, &a); err != nil {
		return "" // an older one has no such place
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.learn(a.Members)
	return a.Cause
}

// learn takes which other hubs there are. An address of each machine is none, but where all of the pool is on one.
func (p *Prober) learn(members []exchange.Member) {
	p.members = p.members[:0]
	own, _, _ := contract.ParsePoolAddress(p.Told())
	for _, m := range members[:min(len(members), exchange.MaxTold)] {
		at, reverse, err := contract.ParsePoolAddress(m.Address)
		if err == nil && !reverse && m.Node != p.Node && (!at.Addr().IsLoopback() || own.Addr().IsLoopback()) {
			p.members = append(p.members, connectivity.Edge{Way: digest.ToHub, Peer: m.Node, Host: m.Address})
		}
	}
}

func (p *Prober) try(ctx context.Context, e connectivity.Edge) {
	trying, cancel := context.WithTimeout(ctx, cmp.Or(p.Patience, connectivity.Patience))
	defer cancel()
	cause, err := p.attempt(trying, e)
	if ctx.Err() != nil {
		return
	}
	if cause != "" {
		p.Logger.Debug("a way inside the pool fails", "way", e.Way, "peer", e.Peer, "at", e.Host, "cause", cause, "err", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan.Saw(p.now(), e, cause)
	p.tell()
}

// tell notes which edges fail, and logs a change.
func (p *Prober) tell() {
	now := digest.EdgesOf(p.plan.Failing())
	if now == p.failing {
		return
	}
	if p.failing = now; now == "" {
		p.Logger.Info("all ways inside the pool work again")
		return
	}
	_, named := now.List()
	for _, e := range named {
		p.Logger.Warn("a way inside the pool fails", "what", e.Says(p.Node))
	}
}
