package coordinator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/coordinator/pull"
	"github.com/weir-edge/weir/impl/coordinator/store"
	"github.com/weir-edge/weir/impl/memory"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/reverse"
	"github.com/weir-edge/weir/impl/snapshot"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Coordinator is the API of a pool. See the package comment.
type Coordinator struct {
	set     *settings
	dir     *store.Dir
	serving serving

	rules  *authz.Rules
	relays []*relay.Relay
	kept   *snapshot.Snapshots
	peers  *peers // nil: this is the only replica
	front  *relays
	lot    reverse.Lot // hubs that cannot be connected to

	// Set by Run.
	store     *store.Store
	fence     *fence.Fence
	leases    *leases
	etcd      *recently
	puller    *pull.Puller
	fed       *fed // nil: this is the only replica
	documents sharedDocuments
	metrics   *metrics
}

// New checks a configuration and takes what it names: data directory, certificates, port. The caller runs the coordinator, or
// closes it.
func New(config Config) (*Coordinator, error) {
	set, err := config.check()
	if err != nil {
		return nil, err
	}
	c := &Coordinator{set: set}
	var relayed []authz.GroupResource
	for _, res := range set.resources {
		r, err := relay.New(relay.Config{Resource: res, RingBytes: set.RingBytes, MaxBytes: set.RelayMaxBytes, RingAge: set.RingAge, Clock: set.Clock, Logger: set.Logger})
		if err != nil {
			return nil, err
		}
		c.relays = append(c.relays, r)
		relayed = append(relayed, authz.GroupResource{Group: res.Group, Resource: res.Resource})
	}
	c.rules = authz.New(set.NodePoolName, relayed...)
	c.front = newRelays(c.relays, set.Clock, set.Logger)
	c.front.proves = func(req *http.Request) { c.serving.listener.proves(req) }
	if err := c.loadCredentials(); err != nil {
		return nil, err
	}
	if c.peers, err = newPeers(set); err != nil {
		return nil, err
	}
	if c.dir, err = store.Lock(set.DataDir); err != nil {
		var locked *store.LockedError
		if errors.As(err, &locked) {
			return nil, err
		}
		return nil, cli.Usage("--data-dir", set.DataDir, "a directory that this process may make and write: "+err.Error())
	}
	c.kept, err = snapshot.Open(snapshot.Config{Dir: filepath.Join(c.dir.Path(), "relays"), Relays: c.relays, Clock: set.Clock, Logger: set.Logger})
	if err != nil {
		c.dir.Close()
		return nil, cli.Usage("--data-dir", set.DataDir, "a directory that this process may make and write: "+err.Error())
	}
	if c.serving.listener, err = listen(set); err != nil {
		c.kept.Close()
		c.dir.Close()
		return nil, err
	}
	return c, nil
}

// loadCredentials reads the files once, for clear errors; later changes are followed by dynamiccertificates.
func (c *Coordinator) loadCredentials() error {
	cert, key := c.set.TLSCertFile, c.set.TLSPrivateKeyFile
	if _, err := os.ReadFile(cert); err != nil {
		return cli.Usage("--tls-cert-file", cert, err.Error())
	}
	if _, err := os.ReadFile(key); err != nil {
		return cli.Usage("--tls-private-key-file", key, err.Error())
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return cli.Usage("--tls-cert-file", cert, "a PEM certificate that belongs to --tls-private-key-file: "+err.Error())
	}
	ca, err := os.ReadFile(c.set.ClientCAFile)
	if err != nil {
		return cli.Usage("--client-ca-file", c.set.ClientCAFile, err.Error())
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return cli.Usage("--client-ca-file", c.set.ClientCAFile, "a PEM file with at least one certificate")
	}
	if c.serving.cert, err = dynamiccertificates.NewDynamicServingContentFromFiles("serving", cert, key); err != nil {
		return cli.Usage("--tls-cert-file", cert, err.Error())
	}
	if c.serving.ca, err = dynamiccertificates.NewDynamicCAContentFromFile("client-ca", c.set.ClientCAFile); err != nil {
		return cli.Usage("--client-ca-file", c.set.ClientCAFile, err.Error())
	}
	return nil
}

func listen(set *settings) (*callers, error) {
	address := net.JoinHostPort(set.BindAddress, strconv.Itoa(set.SecurePort))
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: %w: stop the other process, or choose another --secure-port", address, syscall.EADDRINUSE)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, cli.Usage("--bind-address", set.BindAddress, "an IP address of this machine")
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return newCallers(l), nil
}

// Addr is where the API is served.
func (c *Coordinator) Addr() net.Addr { return c.serving.listener.Addr() }

// Close gives back what New took, if Run is not called.
func (c *Coordinator) Close() {
	c.serving.listener.Close()
	c.kept.Close()
	c.dir.Close()
}

// Run serves until ctx ends.
func (c *Coordinator) Run(ctx context.Context) (err error) {
	defer c.Close()
	defer c.peers.close()
	if c.store, err = store.Open(ctx, c.dir, c.peers.cluster(), c.set.Logger); err != nil {
		return err
	}
	failed := make(chan error, 1)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case err := <-c.store.Failed():
			failed <- err
			stop(err)
		case <-ctx.Done():
		}
	}()
	err = c.serve(ctx)
	select {
	case broken := <-failed: // and cannot be closed
		return broken
	default:
		c.store.Close()
		return err
	}
}

// serve runs everything but etcd.
func (c *Coordinator) serve(ctx context.Context) error {
	defer c.lot.Close()
	t, err := newTypes()
	if err != nil {
		return err
	}
	c.fence = &fence.Fence{Incarnation: c.store.Incarnation()}
	c.metrics = newMetrics(c.relays, c.kept, c.unready)
	c.etcd = &recently{check: c.store.Check, lasts: checkLasts, clock: c.set.Clock}
	server, err := c.newServer(t)
	if err != nil {
		return err
	}
	vote := &election{leases: c.leases, fence: c.fence, clock: c.set.Clock, logger: c.set.Logger}
	bars := &pull.Bars{}
	c.leases.holders = &holders{barred: bars, leads: vote.look, fence: c.fence, clock: c.set.Clock}
	c.front.fail = fail(t)
	pulled := pull.Config{
		Relays: c.relays, Fence: c.fence, Bars: bars, Line: c.lines().to, Leases: vote, Unready: c.unready, Majority: c.etcd.ask,
		Beside: func(ctx context.Context, up *hop.Upstream) { c.documents.keep(ctx, up, c.set.Clock) },
		Freed:  func(reason string) { c.metrics.freed.WithLabelValues(reason).Inc() }, Refilled: func(resource, node string) { c.metrics.refilled.WithLabelValues(resource, node).Inc() },
		Clock: c.set.Clock, Logger: c.set.Logger,
	}
	if c.peers != nil {
		c.fed = newFed(c.peers, c.store, c.set.Clock, c.set.Logger)
		pulled.Replicas = c.fed
	}
	if c.puller, err = pull.New(pulled); err != nil {
		return err
	}
	c.fence.Moved, vote.held = c.puller.Moved, c.puller.Held
	vote.attach()

	g, ctx := errgroup.WithContext(ctx)
	if c.fed != nil {
		c.fed.moved = c.puller.Moved
		g.Go(func() error { return c.fed.run(ctx) })
	}
	for _, r := range c.relays {
		g.Go(func() error { return r.Run(ctx) })
	}
	g.Go(func() error { return c.kept.Run(ctx) })
	g.Go(func() error { return vote.run(ctx) })
	g.Go(func() error {
		if err := server.PrepareRun().RunWithContext(ctx); err != nil {
			return fmt.Errorf("api server: %w", err)
		}
		return nil
	})
	g.Go(func() error { return c.puller.Run(ctx) })
	memory.Trim()
	return g.Wait()
}
