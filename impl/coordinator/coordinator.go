package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/coordinator/lead"
	"github.com/weir-edge/weir/impl/coordinator/store"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/snapshot"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/trust"
)

// Coordinator is the API of a pool. See the package comment.
type Coordinator struct {
	set     *settings
	dir     *store.Dir
	serving serving

	rules  *authz.Rules
	relays *scope.Set
	told   *directory.Directory // what the pool is told about itself
	kept   *snapshot.Snapshots
	peers  *peers // nil: this is the only replica
	front  *relays
	listed *Catalog
	lot    hop.Lot // hubs that cannot be connected to
	fresh  atomic.Pointer[func(*relay.Relay) bool]
}

// New checks a configuration and takes what it names: data directory, certificates, port. The caller runs the
// coordinator, or closes it.
func New(config Config) (*Coordinator, error) {
	set, err := config.check()
	if err != nil {
		return nil, err
	}
	c := &Coordinator{set: set, relays: &scope.Set{}}
	c.rules = authz.New(set.NodePoolName, c.relayed)
	c.listed = &Catalog{Relays: c.relays.All}
	c.front = &relays{
		all: c.relays, copies: c.relayed, clock: set.Clock, logger: set.Logger,
		writes: limit.Rate{Every: time.Second / limit.WriteRate, Burst: limit.WriteBurst, Keys: limit.Writers},
	}
	c.front.proves = func(req *http.Request) { c.serving.listener.Proves(req) }
	c.front.lasts = func(req *http.Request) (*http.Request, func()) { return c.serving.lasts(req, set.Clock) }
	if c.serving, err = loadCredentials(set); err != nil {
		return nil, err
	}
	if c.dir, err = store.Lock(set.DataDir); err != nil {
		var locked *store.LockedError
		if errors.As(err, &locked) {
			return nil, err
		}
		return nil, cli.Usage("--data-dir", set.DataDir, "a directory that this process may make and write: "+err.Error())
	}
	if err := set.Placement.Settle(c.dir.Path(), set.Logger); err != nil {
		c.dir.Close()
		return nil, err
	}
	c.serving.time = pki.OpenProven(filepath.Join(c.dir.Path(), "time"), set.Clock, set.Logger)
	c.serving.overhear(set.CertificatesDir)
	c.serving.ca.open(set, c.dir.Path(), c.serving.time)
	if err := c.buildRelays(); err != nil {
		c.dir.Close()
		return nil, err
	}
	if c.peers, err = newPeers(set, c.serving.ca); err != nil {
		c.dir.Close()
		return nil, err
	}
	c.peers.heed(c.told.Now())
	c.kept, err = snapshot.Open(snapshot.Config{
		Dir: c.keptIn(), Relays: c.relays.All(), Clock: set.Clock, Logger: set.Logger,
	})
	if err != nil {
		c.dir.Close()
		return nil, cli.Usage("--data-dir", set.DataDir, "a directory that this process may make and write: "+err.Error())
	}
	c.serving.denied = trust.NewDenylist(trust.DenylistConfig{
		Pool: set.NodePoolName, Trusted: c.serving.ca.held.List, Speakers: c.serving.ca.held.Speakers, Time: c.serving.time,
		File:   filepath.Join(c.dir.Path(), "denylist"),
		Logger: set.Logger,
	})
	c.serving.late = &pki.Allowance{
		Time: c.serving.time, Cloud: c.seesCloud, For: c.allowance, Refuse: c.serving.denied.Refuse, Logger: set.Logger,
	}
	c.serving.learn()
	if err := c.peers.meet(&c.serving, c.dir.Path(), func() bool { return c.fresh.Load() != nil && c.seesCloud() }); err !=
		nil {
		c.kept.Close()
		c.dir.Close()
		return nil, err
	}
	if c.serving.listener, err = listen(set, c.serving.denied); err != nil {
		c.peers.close()
		c.kept.Close()
		c.dir.Close()
		return nil, err
	}
	return c, nil
}

// seesCloud reports whether there is a sign of the cloud: what is fresh came from there a moment ago. Before anything
// is served nobody knows.
func (c *Coordinator) seesCloud() bool {
	fresh := c.fresh.Load()
	return fresh == nil || slices.ContainsFunc(c.relays.All(), *fresh)
}

// Addr is where the API is served.
func (c *Coordinator) Addr() net.Addr { return c.serving.listener.Addr() }

// Close gives back what New took, if Run is not called.
func (c *Coordinator) Close() {
	c.serving.listener.Close()
	c.peers.close()
	c.kept.Close()
	c.serving.time.Close()
	c.dir.Close()
}

// Run serves until ctx ends.
func (c *Coordinator) Run(ctx context.Context) error {
	defer c.Close()
	if err := c.peers.start(); err != nil {
		return err
	}
	etcd, err := store.Open(ctx, c.dir, c.peers.cluster(), c.set.Logger)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case err := <-etcd.Failed():
			failed <- err
			stop(err)
		case <-ctx.Done():
		}
	}()
	err = c.serve(ctx, etcd)
	select {
	case broken := <-failed: // and cannot be closed
		return broken
	default:
		etcd.Close()
		return err
	}
}

// serve runs everything but etcd.
func (c *Coordinator) serve(ctx context.Context, etcd *store.Store) error {
	defer c.lot.Close()
	if err := gates(); err != nil {
		return fmt.Errorf("feature gates: %w", err)
	}
	t, err := newTypes()
	if err != nil {
		return err
	}
	leases, err := newLeases(t, storage(t, etcd.Endpoint()), c.rules.Authorizer())
	if err != nil {
		return err
	}
	leader, bars, shared := &member.Fence{Incarnation: etcd.Incarnation()}, &lead.Bars{}, &lead.Documents{}
	vote := &lead.Election{
		Store: stored{leases.Store}, Fence: leader, Bars: bars, Clock: c.set.Clock, Logger: c.set.Logger,
	}
	lies := lead.NewJury(lead.JuryConfig{
		Notes: etcd, Leader: leader.Leader, Free: vote.Free, Relays: c.relays.All, Clock: c.set.Clock, Logger: c.set.Logger,
	})
	vote.Refuses, vote.LeftOut, leases.election = lies.Refuses,
		func() bool { return c.set.Placement.LeftOut(c.told.Now()) }, vote
	if c.set.LeadersOnly {
		vote.Only = contract.LeaderGroup
	}
	ready := lead.Readiness{FreshWithin: c.set.FreshWithin, Floor: lies.Floor, Clock: c.set.Clock}
	c.fresh.Store(new(func(r *relay.Relay) bool { return ready.Unready(r) == nil }))
	metrics := newMetrics(c.set.NodePoolName, c.relays.All, c.kept, ready.Unready)
	metrics.registry.MustRegister(c.serving.denied, c.serving.ca.held, c.serving.late.Collector(), c.told)
	lies.Lied, c.front.later = metrics.lied.Inc, metrics.later.Inc
	health := &recently{check: etcd.Check, lasts: checkLasts, clock: c.set.Clock}
	ways := &lines{lot: &c.lot, rules: c.rules, clock: c.set.Clock, serving: &c.serving}
	pulled := lead.PullConfig{
		Relays: c.relays.All, Fence: leader, Bars: bars, Line: ways.to, Leases: vote, Unready: ready.Unready,
		Majority: health.ask,
		Beside:   func(ctx context.Context, up *hop.Upstream) { shared.Keep(ctx, up, c.set.Clock) },
		Freed: func(reason string) {
			metrics.freed.WithLabelValues(reason).Inc()
		}, Refilled: func(resource, node string) { metrics.refilled.WithLabelValues(resource, node).Inc() },
		Clock: c.set.Clock, Logger: c.set.Logger,
	}
	var claims *store.Fed // nil: this is the only replica
	if c.peers != nil {
		claims = store.NewFed(c.peers.Replicas, etcd, c.set.Clock, c.set.Logger)
		pulled.Replicas = claims
	}
	puller := lead.NewPuller(pulled)
	follows := scope.New(scope.Config{
		Relays: sharing{c, puller}, Directory: c.told, Always: c.set.always, Linger: c.set.Linger,
		Holds: func() bool { return !c.seesCloud() }, Clock: c.set.Clock, Logger: c.set.Logger,
	})
	metrics.registry.MustRegister(follows)
	c.front.reads.Store(new(follows.Read))
	leader.Moved, vote.Held = puller.Moved, puller.Held
	stored{leases.Store}.tell(vote)
	paths := map[string]http.Handler{
		"/metrics": metrics.handler(),
		contract.StatusPath: &lead.Reporter{
			Pool: c.set.NodePoolName, Replica: c.set.Name, Replicas: pulled.Replicas, Fence: leader, Relays: c.relays.All,
			Unknown: follows.Unknown, Idle: follows.Idle, Ready: ready, Puller: puller,
			Doubt: lies.Doubt, Space: etcd.Space, NodeOf: nodeOf, Clock: c.set.Clock,
		},
		contract.DocumentsPath: shared.Serve(puller.Upstream),
		contract.LinePath: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			c.lot.Admit(w, req, nodeOf(req))
		}),
		contract.DoubtPath: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			lies.Serve(w, req, nodeOf(req))
		}),
		contract.ImagesPath: (&exchange.Images{Clock: c.set.Clock}).Handler(nodeOf),
		contract.ReachPath:  (&exchange.CallBacks{Clock: c.set.Clock, Call: ways.call}).Handler(nodeOf),
		contract.MovedPath:  (&exchange.Moved{Clock: c.set.Clock}).Handler(nodeOf),
		contract.RollPath: new(exchange.RollCall).Handler(nodeOf, func(node string) bool {
			return leader.Leader().Node == node
		}),
	}
	c.board().Serve(func(path string, h http.Handler) { paths[path] = h })
	if c.peers != nil {
		paths[contract.RejoinPath] = c.peers.rejoin(etcd.Readmit)
	}
	server, err := api{
		types: t, serving: c.serving, authorizer: c.rules.Authorizer(), front: c.front, leases: leases, catalog: c.listed,
		paths: paths, etcd: health.ask, waits: ready.Waits,
	}.server()
	if err != nil {
		return err
	}

	g, ctx := errgroup.WithContext(ctx)
	if claims != nil {
		claims.Moved = puller.Moved
		g.Go(func() error { return claims.Run(ctx) })
		g.Go(func() error { return c.peers.follow(ctx, c.told) })
	}
	g.Go(func() error {
		return etcd.Tend(ctx, c.set.Logger, func(full bool) {
			metrics.reclaims.WithLabelValues(strconv.FormatBool(full)).Inc()
		})
	})
	g.Go(func() error { c.board().Run(ctx, c.set.Clock, c.peers.meetOthers, nil); return nil })
	g.Go(func() error { return follows.Run(ctx) })
	g.Go(func() error { return c.kept.Run(ctx) })
	g.Go(func() error {
		for ; ctx.Err() == nil; process.Pause(ctx, c.set.Clock, overhearEvery) {
			c.serving.overhear(c.set.CertificatesDir)
		}
		return nil
	})
	g.Go(func() error { return vote.Run(ctx) })
	g.Go(func() error {
		if err := server.PrepareRun().RunWithContext(ctx); err != nil {
			return fmt.Errorf("api server: %w", err)
		}
		return nil
	})
	g.Go(func() error { return puller.Run(ctx) })
	g.Go(func() error { return lies.Run(ctx) })
	process.Trim()
	return g.Wait()
}

// nodeOf is the node whose hub asks, "" if somebody else does.
func nodeOf(req *http.Request) string {
	u, _ := genericrequest.UserFrom(req.Context())
	return authz.NodeOf(u)
}
