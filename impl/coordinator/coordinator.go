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
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/coordinator/fence"
	"github.com/weir-edge/weir/impl/coordinator/store"
	"github.com/weir-edge/weir/impl/memory"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/snapshot"
)

// Coordinator is the API of a pool. See the package comment.
type Coordinator struct {
	set     *settings
	dir     *store.Dir
	serving serving

	rules  authorizer.Authorizer
	relays []*relay.Relay
	kept   *snapshot.Snapshots
	peers  *peers // nil: this is the only replica
	front  *relays

	// Set by Run.
	store   *store.Store
	fence   *fence.Fence
	leases  *leases
	feeds   *feeds
	metrics *metrics
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
	c.rules = authz.New(set.NodePoolName, relayed...).Authorizer()
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
	t, err := newTypes()
	if err != nil {
		return err
	}
	c.fence = &fence.Fence{Incarnation: c.store.Incarnation()}
	c.metrics = newMetrics(c.relays, c.kept, c.unready)
	c.feeds = newFeeds(ctx, c.relays)
	server, err := c.newServer(t)
	if err != nil {
		return err
	}
	vote := &election{leases: c.leases, fence: c.fence, clock: c.set.Clock, logger: c.set.Logger}
	c.leases.holders = &holders{leads: vote.look, fence: c.fence, clock: c.set.Clock}
	c.front.fail, c.feeds.fail = fail(t), fail(t)
	c.feeds.fence, c.feeds.look, c.feeds.unready, c.feeds.metrics, c.feeds.clock, c.feeds.logger = c.fence, vote.look, c.unready, c.metrics, c.set.Clock, c.set.Logger

	c.feeds.pulse = &pulse{
		fence: c.fence, free: c.feeds.freeing(vote.free), freed: func(reason string) { c.metrics.freed.WithLabelValues(reason).Inc() }, clock: c.set.Clock, logger: c.set.Logger,
	}
	c.fence.Moved = c.feeds.enforce
	vote.attach()

	g, ctx := errgroup.WithContext(ctx)
	if err := c.joinReplicas(ctx, g); err != nil {
		return err
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
	if c.peers == nil { // else the leader's pulse may go to another replica
		g.Go(func() error { return c.feeds.pulse.expect(ctx) })
	}
	memory.Trim()
	return g.Wait()
}

// joinReplicas lets the relays be fed from the replica that the leader feeds, if there are several.
func (c *Coordinator) joinReplicas(ctx context.Context, g *errgroup.Group) error {
	if c.peers == nil {
		return nil
	}
	f := newFed(c.peers.self, c.store, c.set.Clock, c.set.Logger)
	f.moved = c.feeds.leaves
	c.feeds.fed = f
	pullers := make([]*puller, 0, len(c.relays))
	for _, r := range c.relays {
		p, err := newPuller(c.feeds.of(r), c.peers, f, c.set.Clock)
		if err != nil {
			return err
		}
		pullers = append(pullers, p)
	}
	g.Go(func() error { return f.run(ctx) })
	for _, p := range pullers {
		g.Go(func() error { return p.run(ctx) })
	}
	return nil
}
