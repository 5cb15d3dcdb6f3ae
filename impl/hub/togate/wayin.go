package togate

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/reverse"
)

const (
	wayInLooks = time.Second      // how often it is looked whether this hub leads
	grace      = 10 * time.Minute // connections last after that
	pair       = 2                // leader hubs that keep connections
)

// WayInConfig is what a WayIn is made of.
type WayInConfig struct {
	Node      string
	Pool      string
	Leads     func() bool          // this hub leads its pool
	Directory *directory.Directory // tells where the gate is, and what may be reached
	Cloud     *uplink.Cloud
	Cert      uplink.Certificate // of the hub's own user
	Net       uplink.Dials
	// Connect dials inside the pool; nil: TCP. For tests.
	Connect func(context.Context, netip.AddrPort) (net.Conn, error)
	Clock   clock.WithTicker
	Logger  *slog.Logger
}

// WayIn keeps the connections. It is safe for concurrent use.
type WayIn struct {
	WayInConfig
	nodes *nodes

	mu      sync.Mutex
	leaders []*reverse.Leader
}

// NewWayIn makes one that has no connection.
func NewWayIn(c WayInConfig) *WayIn {
	return &WayIn{WayInConfig: c, nodes: &nodes{
		pool: c.Pool, cloud: c.Cloud.Way(uplink.ClassControl, uplink.AsHub), clock: c.Clock,
	}}
}

// Status is that of each connection that there is to be.
func (x *WayIn) Status() (all []reverse.LeaderState) {
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, l := range x.leaders {
		all = append(all, l.State())
	}
	return all
}

// wanted is the gate to which connections are kept now; the zero value: to none.
func (x *WayIn) wanted() directory.Gate {
	e := x.Directory.Now()
	if e.Gate.Ways == 0 || !x.Leads() {
		return directory.Gate{}
	}
	if e.Mode == contract.ModeLeaderHubs {
		first := e.Leaders[:min(pair, len(e.Leaders))]
		if !slices.ContainsFunc(first, func(l directory.Leader) bool { return l.Node == x.Node }) {
			return directory.Gate{}
		}
	}
	return e.Gate
}

// Run keeps connections while they are wanted, until ctx ends.
func (x *WayIn) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	tick := x.Clock.NewTicker(wayInLooks)
	defer tick.Stop()
	is, leave := directory.Gate{}, func() {}
	for {
		changed := x.Directory.Changed()
		if want := x.wanted(); want != is {
			leave()
			is, leave = want, x.keep(ctx, want, &all)
		}
		select {
		case <-tick.C():
		case <-changed:
		case <-ctx.Done():
			leave()
			return nil
		}
	}
}

// keep keeps a connection to each replica of a gate, until leave is called. They end with ctx.
func (x *WayIn) keep(ctx context.Context, gate directory.Gate, all *sync.WaitGroup) (leave func()) {
	leaders := x.toEach(ctx, gate)
	x.mu.Lock()
	x.leaders = leaders
	x.mu.Unlock()
	running, leave := context.WithCancel(ctx)
	for _, l := range leaders {
		all.Go(func() { _ = l.Run(running) })
	}
	return leave
}

func (x *WayIn) toEach(ctx context.Context, gate directory.Gate) (all []*reverse.Leader) {
	u, err := url.Parse(gate.Server) // the directory has checked it
	roots := x509.NewCertPool()
	if err != nil || gate.Ways == 0 || !roots.AppendCertsFromPEM([]byte(gate.Authorities)) {
		return nil
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "443")
	}
	dialer := x.Cloud.Into(x.Net, roots, x.Cert)
	taken := &taken{names: map[string]bool{}}
	for range gate.Ways {
		l, err := reverse.NewLeader(reverse.LeaderConfig{
			Gate: address, Reach: func(ctx context.Context, node string) (reverse.Reach, error) {
				return x.reach(ctx, node, u.Hostname())
			},
			Dial: func(ctx context.Context) (net.Conn, error) { return dialer.Connect(ctx, "tcp", address) },
			Take: taken.take, Connect: x.Connect, Grace: grace, Ends: ctx, Clock: x.Clock, Logger: x.Logger,
		})
		if err != nil {
			x.Logger.Error("the cloud does not reach into the pool", "err", err)
			return nil
		}
		all = append(all, l)
	}
	return all
}

// reach is what may be dialed, for an address of a node.
func (x *WayIn) reach(ctx context.Context, name, gate string) (r reverse.Reach, err error) {
	r.Named = x.Directory.Now().Reach
	if ip, err := netip.ParseAddr(gate); err == nil {
		r.Never = []netip.Addr{ip}
	}
	if name != "" {
		r.Nodes, err = x.nodes.addresses(ctx, name)
	}
	return r, err
}

// taken are the gates to which there is a connection.
type taken struct {
	mu    sync.Mutex
	names map[string]bool
}

func (t *taken) take(name string) (release func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names[name] {
		return nil, fmt.Errorf("there is a connection to the replica %s already", name)
	}
	t.names[name] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.names, name)
	}, nil
}
