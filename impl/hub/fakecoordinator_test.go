package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/inmemory"
	"github.com/weir-edge/weir/impl/relay"
)

// fakeCoordinator is a coordinator in memory behind real TLS, which can be made to fail.
type fakeCoordinator struct {
	t      testing.TB
	server *httptest.Server
	ctx    context.Context
	cert   tls.Certificate
	ca     *authority
	serve  sync.WaitGroup

	life   int
	leases *leaseLog
	relays []*relay.Relay
	end    func() // of the one that runs now

	mu    sync.Mutex
	now   *inmemory.Coordinator
	shuns string // the node whose hub cannot be reached
	down  bool
}

func newFakeCoordinator(t testing.TB, ca *authority, resources ...string) *fakeCoordinator {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &fakeCoordinator{t: t, ctx: ctx, cert: ca.tls("coordinator"), ca: ca, end: func() {}}
	if len(resources) == 0 {
		resources = twoResources
	}
	for _, name := range resources {
		c.relays = append(c.relays, c.relay(name))
	}
	c.wipe()
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		c.mu.Lock()
		now, down := c.now, c.down
		c.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		now.ServeHTTP(w, req)
	}))
	c.server.TLS = &tls.Config{
		Certificates: []tls.Certificate{ca.tls("coordinator")}, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: ca.pool(), Time: ca.now, MinVersion: tls.VersionTLS13,
	}
	c.server.EnableHTTP2 = true
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.server.StartTLS()
	t.Cleanup(func() {
		cancel()
		c.server.CloseClientConnections()
		c.server.Close()
		c.serve.Wait()
	})
	return c
}

// relay makes one that holds nothing.
func (c *fakeCoordinator) relay(resource string) *relay.Relay {
	res, err := relay.ParseResource(resource)
	check(c.t, err)
	r, err := relay.New(relay.Config{Resource: res})
	check(c.t, err)
	c.serve.Go(func() { _ = r.Run(c.ctx) })
	return r
}

// wipe is what the loss of its disk does to a coordinator: Leases are gone, versions come again.
func (c *fakeCoordinator) wipe() {
	c.end()
	c.life++
	c.leases = newLeaseLog(strconv.Itoa(c.life), 10)
	c.begin()
}

func (c *fakeCoordinator) begin() {
	now, err := inmemory.New(inmemory.Config{
		Pool: "pool-a", Relays: slices.Clone(c.relays), Leases: c.leases.Store, Clock: clock.RealClock{},
		Trusted: func() []*x509.Certificate { return []*x509.Certificate{c.ca.cert} },
		Line: inmemory.Lines(c.cert, func(ctx context.Context, node, address string) (net.Conn, error) {
			shuns := ""
			if c.set(func() { shuns = c.shuns }); node == shuns {
				return nil, errors.New("it cannot be reached")
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}),
	})
	check(c.t, err)
	c.set(func() { c.now = now })
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	c.serve.Go(func() {
		defer close(done)
		_ = now.Run(ctx)
	})
	c.end = func() {
		cancel()
		<-done
	}
}

// drop loses what was copied.
func (c *fakeCoordinator) drop() {
	c.server.CloseClientConnections()
	for i, r := range c.relays {
		c.relays[i] = c.relay(r.Resource().String())
	}
}

// forget is a restart that keeps Leases alone.
func (c *fakeCoordinator) forget() {
	c.drop()
	c.end()
	c.begin()
}

// empty is a restart without the disk: what was copied is gone as well.
func (c *fakeCoordinator) empty() {
	c.drop()
	c.wipe()
}

func (c *fakeCoordinator) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// identity holds the election Lease.
func (c *fakeCoordinator) identity() string {
	l, err := c.leases.Get(c.ctx, contract.LeaseNamespace, contract.ElectionLease)
	check(c.t, err)
	return *l.Spec.HolderIdentity
}

// holder is the node that holds a Lease of the pool.
func (c *fakeCoordinator) holder(lease string) string {
	l, err := c.leases.Get(c.ctx, contract.LeaseNamespace, lease)
	if err != nil {
		return "nobody"
	}
	return contract.NodeOfIdentity(*l.Spec.HolderIdentity)
}
