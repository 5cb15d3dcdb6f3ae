package gate

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Gate is the relay in the cloud.
type Gate struct {
	set      *settings
	listener net.Listener
	relays   *scope.Set
	feeders  feeders
	scope    *scope.Scope
	front    *front
	wayIn    *wayIn // nil: there is none
	metrics  *metrics
	cloud    *hop.Upstream
	closing  func()
}

// New checks a configuration and opens the port. A Gate that was made must be run, or closed by Close.
func New(c Config) (*Gate, error) {
	set, err := c.check()
	if err != nil {
		return nil, err
	}
	if err := set.connect(); err != nil {
		return nil, err
	}
	g := &Gate{set: set, relays: scope.NewSet()}
	if g.cloud, g.closing, err = upstream(set.rest); err != nil {
		return nil, err
	}
	g.scope = scope.New(scope.Config{
		Relays: sharing{g}, Fixed: directory.SharedAll(set.resources), Always: set.always, Linger: set.Linger,
		Clock: set.Clock, Logger: set.Logger,
	})
	for _, r := range set.resources {
		if set.Linger == 0 || slices.Contains(set.always, r.String()) {
			if _, err := (sharing{g}).Join(r); err != nil {
				return nil, err
			}
		}
	}
	g.front = &front{
		reads: g.scope.Read, resources: set.resources, within: set.FreshWithin, clock: set.Clock, logger: set.Logger,
	}
	g.metrics = newMetrics(g.relays.All, state{g.front.readersOf, g.feeders.lists})
	g.front.stale = func(name string) { g.metrics.behind.WithLabelValues(name).Inc() }
	address := net.JoinHostPort(set.BindAddress, strconv.Itoa(set.SecurePort))
	g.listener, err = cli.OpenPort(set.BindAddress, set.SecurePort,
		cli.Usage("--secure-port", address, "an IP address of this machine"))
	if err != nil {
		return nil, err
	}
	if set.WayIn {
		if err := g.openWay(); err != nil {
			g.Close()
			return nil, err
		}
	}
	return g, nil
}

func (g *Gate) openWay() (err error) {
	port := 0
	if at, ok := g.listener.Addr().(*net.TCPAddr); ok {
		port = at.Port
	}
	g.wayIn, err = newWayIn(wayInConfig{Cluster: g.set.rest, Port: port, Clock: g.set.Clock, Logger: g.set.Logger})
	if err == nil {
		g.metrics.registry.MustRegister(g.wayIn)
	}
	return err
}

// upstream is kube-apiserver, as the identity of this process. It is near: nothing is compressed.
func upstream(c *rest.Config) (up *hop.Upstream, done func(), err error) {
	rt, err := rest.TransportFor(c)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", c.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(c)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to %s: %w", c.Host, err)
	}
	client := &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &hop.Upstream{
		Name: "cloud", URL: &url.URL{Scheme: base.Scheme, Host: base.Host, Path: base.Path}, Client: client, Consistent: true,
	}, client.CloseIdleConnections, nil
}

// Addr is where pools read.
func (g *Gate) Addr() net.Addr { return g.listener.Addr() }

// Close gives back what New took, if Run is not called.
func (g *Gate) Close() {
	_ = g.listener.Close()
	g.closing()
}

// Run serves until ctx ends.
func (g *Gate) Run(ctx context.Context) error {
	defer g.Close()
	server, err := api{g.set, g.listener, g.front, g.wayIn, g.relays.All, g.metrics.handler()}.server()
	if err != nil {
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	all.Go(func() error { return g.scope.Run(ctx) })
	all.Go(func() error { return g.front.run(ctx) })
	if g.wayIn != nil {
		all.Go(func() error { return g.wayIn.Run(ctx) })
	}
	all.Go(func() error {
		if err := server.PrepareRun().RunWithContext(ctx); err != nil {
			return fmt.Errorf("api server: %w", err)
		}
		return nil
	})
	process.Trim()
	defer func() {
		if g.front.pods != nil {
			g.front.pods.Close()
		}
	}()
	return all.Wait()
}

// sharing is the relays of a gate as its scope has them.
type sharing struct{ *Gate }

// All implements scope.Relays.
func (s sharing) All() []*relay.Relay { return s.relays.All() }

// Join implements scope.Relays.
func (s sharing) Join(res relay.Resource) (*relay.Relay, error) {
	r, err := relay.New(relay.Config{
		Resource: res, RingBytes: s.set.RingBytes, RingAge: s.set.RingAge, Clock: s.set.Clock, Logger: s.set.Logger,
	})
	if err != nil {
		return nil, err
	}
	f, err := source.NewFeeder(source.Config{
		Relay: r, Pulse: &s.feeders.pulse, Learned: s.learned, Clock: s.set.Clock, Logger: s.set.Logger,
	})
	if err != nil {
		return nil, err
	}
	f.Use(s.cloud)
	s.feeders.add(r, f)
	s.relays.Add(r)
	return r, nil
}

// Feed implements scope.Relays.
func (s sharing) Feed(ctx context.Context, r *relay.Relay) error {
	if f := s.feeders.of(r); f != nil {
		return f.Run(ctx)
	}
	return nil
}

// Leave implements scope.Relays.
func (s sharing) Leave(r *relay.Relay) { s.relays.Remove(r) }

// Left implements scope.Relays.
func (s sharing) Left(r *relay.Relay) { s.feeders.remove(r) }

// learned takes that kube-apiserver is in another history: all resources are.
func (g *Gate) learned(number uint64, _ bool) {
	for _, f := range g.feeders.all() {
		f.Overrule(number)
	}
}
