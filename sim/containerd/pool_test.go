package containerd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/containerd/v2/core/remotes"
	"github.com/containerd/containerd/v2/core/remotes/docker"
	"github.com/containerd/containerd/v2/plugins/content/local"
	"github.com/containerd/log"
	"github.com/containerd/platforms"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/exchange"
	weir "github.com/weir-edge/weir/impl/images"
)

func TestMain(m *testing.M) {
	_ = log.SetLevel("panic")
	goleak.VerifyTestMain(m)
}

// pool is nodes that reach each other, and a registry.
type pool struct {
	t        *testing.T
	registry *registry
	desk     *exchange.Images
	away     atomic.Bool // the cloud
	nodes    []*node
}

// node is a machine: containerd's resolver and content store, and a mirror.
type node struct {
	pool   *pool
	name   string
	root   string
	store  content.Store
	mirror *weir.Mirror
	at     *httptest.Server       // the mirror
	shown  *httptest.Server       // what other members read
	lies   atomic.Pointer[string] // the digest of which it serves wrong bytes to others
	stop   func()
}

func newPool(t *testing.T, size int, r *registry) *pool {
	t.Helper()
	p := &pool{t: t, registry: r, desk: &exchange.Images{Clock: clock.RealClock{}}}
	for i := range size {
		p.nodes = append(p.nodes, p.newNode(fmt.Sprintf("edge-%d", i)))
	}
	return p
}

func (p *pool) newNode(name string) *node {
	n := &node{pool: p, name: name, root: p.t.TempDir()}
	var err error
	if n.store, err = local.NewStore(n.root); err != nil {
		p.t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	metrics, files := weir.NewMetrics(), &weir.Store{Root: n.root}
	n.mirror = weir.New(weir.Config{
		Node: name, Store: files, Pool: n, Away: p.away.Load, File: p.t.TempDir() + "/tags", Metrics: metrics,
		Clock: clock.RealClock{}, Logger: logger,
	})
	shown := &weir.Shown{
		Store: files, Pulling: n.mirror.Pulling, Clock: clock.RealClock{}, Bytes: metrics.Bytes,
		Caller: func(*http.Request) string { return "a member" },
	}
	n.shown = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if d := n.lies.Load(); d != nil && strings.HasSuffix(req.URL.Path, *d) {
			w = &liar{ResponseWriter: w}
		}
		shown.ServeHTTP(w, req)
	}))
	n.at = httptest.NewServer(n.mirror)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = n.mirror.Run(ctx)
	}()
	n.stop = func() {
		cancel()
		<-ended
		for _, s := range []*httptest.Server{n.at, n.shown} {
			s.CloseClientConnections()
			s.Close()
		}
	}
	p.t.Cleanup(func() { n.stop() })
	return n
}

// liar changes the last byte of what it is given.
type liar struct{ http.ResponseWriter }

func (l *liar) Write(p []byte) (int, error) {
	wrong := append([]byte{}, p...)
	wrong[len(wrong)-1]++
	return l.ResponseWriter.Write(wrong)
}

// Ask implements images.Pool.
func (n *node) Ask(_ context.Context, a exchange.ImagesAsk) (exchange.ImagesAnswer, error) {
	a.Address = strings.TrimPrefix(n.shown.URL, "http://")
	return n.pool.desk.Exchange(n.name, a)
}

// Open implements images.Pool.
func (n *node) Open(ctx context.Context, from exchange.Holder, method string, d exchange.Digest,
	part string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+from.Address+contract.ImagesBlobsPath+d.String(), nil)
	if err != nil {
		return nil, err
	}
	if part != "" {
		req.Header.Set("Range", part)
	}
	return (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(req)
}

// hosts are those of a node's certs.d: the mirror, then the registry. As containerd's own ConfigureHosts does, each
// call makes clients of its own.
func (n *node) hosts(string) ([]docker.RegistryHost, error) {
	host := func(server string, can docker.HostCapabilities) docker.RegistryHost {
		u, err := url.Parse(server)
		if err != nil {
			n.pool.t.Error(err)
		}
		return docker.RegistryHost{
			Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: narrow}}, Host: u.Host,
			Scheme: "http", Path: "/v2", Capabilities: can,
		}
	}
	both := docker.HostCapabilityPull | docker.HostCapabilityResolve
	return []docker.RegistryHost{host(n.at.URL, both), host(n.pool.registry.URL, both)}, nil
}

// narrow opens a connection that holds little.
func narrow(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if t, ok := c.(*net.TCPConn); err == nil && ok {
		err = t.SetReadBuffer(buffer)
	}
	return c, err
}

// pull pulls an image as containerd does, without unpacking it.
func (n *node) pull(ctx context.Context, ref string) (string, error) {
	return n.pullFor(ctx, ref, platforms.All)
}

// pullFor pulls what an index has for a platform.
func (n *node) pullFor(ctx context.Context, ref string, platform platforms.MatchComparer) (string, error) {
	resolver := docker.NewResolver(docker.ResolverOptions{Hosts: n.hosts})
	name, desc, err := resolver.Resolve(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("resolve: %w", err)
	}
	fetcher, err := resolver.Fetcher(ctx, name)
	if err != nil {
		return "", err
	}
	return desc.Digest.String(), images.Dispatch(ctx,
		images.Handlers(remotes.FetchHandler(n.store, fetcher),
			images.LimitManifests(images.FilterPlatforms(images.ChildrenHandler(n.store), platform), platform, 1)), nil, desc)
}

// pullAll has several nodes pull at the same moment.
func (p *pool) pullAll(ref string, nodes ...*node) error {
	errs := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() {
			_, err := n.pull(context.Background(), ref)
			if err != nil {
				err = fmt.Errorf("%s: %w", n.name, err)
			}
			errs <- err
		}()
	}
	var all error
	for range nodes {
		all = errors.Join(all, <-errs)
	}
	return all
}
