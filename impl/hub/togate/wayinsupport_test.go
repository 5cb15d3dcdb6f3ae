package togate

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/hubtest"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/reverse"
	"github.com/weir-edge/weir/impl/testkit"
)

const (
	kubelet = "10.0.0.7:10250" // of edge-1
)

// gate is one replica. It takes each hub.
type gate struct {
	*httptest.Server
	ways *reverse.Ways

	mu    sync.Mutex
	shown []string // common names of the certificates of hubs
}

func newGate(t testing.TB) *gate {
	t.Helper()
	ways, err := reverse.NewWays(reverse.WaysConfig{Gap: -1})
	check(t, err)
	g := &gate{ways: ways}
	g.Server = hubtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		name := req.TLS.PeerCertificates[0].Subject.CommonName
		g.mu.Lock()
		g.shown = append(g.shown, name)
		g.mu.Unlock()
		ways.Admit(w, req, hubtest.PoolName, name)
	}), false)
	t.Cleanup(ways.Close)
	return g
}

func (g *gate) entry(ways int) directory.Gate {
	return directory.Gate{Server: g.URL, Authorities: hubtest.Authorities(g.Server), Ways: ways}
}

// has reports whether so many hubs have a connection.
func (g *gate) has(n int) func() bool {
	return func() bool { return len(g.ways.State().Ways) == n }
}

// asked is how many connections hubs have asked for.
func (g *gate) asked() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.shown)
}

// leadingHub is a hub that leads, with the cloud.
type leadingHub struct {
	t     testing.TB
	pool  *hubtest.Pool
	cert  *hubtest.Holder
	clock *clocktesting.FakeClock
	way   *WayIn
	leads atomic.Bool
	cloud *uplink.Cloud
	end   func() // of all that runs; it may be called twice

	mu     sync.Mutex
	answer http.HandlerFunc // of the cloud, for nodes
	asked  []string         // queries for nodes
	turn   []string         // addresses that the gate's address leads to, one after the other; none: to itself
}

// newLeadingHub is a hub that leads and was told e.
func newLeadingHub(t testing.TB, e directory.Entry) *leadingHub {
	t.Helper()
	h := &leadingHub{t: t, pool: hubtest.NewPool(t), cert: &hubtest.Holder{}, clock: clocktesting.NewFakeClock(time.Now())}
	h.leads.Store(true)
	h.cert.Show(t, "hub-1")
	h.answer = nodes1("edge-1", hubtest.PoolName, "10.0.0.7")
	kube := hubtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/api/v1/nodes" {
			return
		}
		h.mu.Lock()
		answer := h.answer
		h.asked = append(h.asked, req.URL.Query().Get("fieldSelector")+" "+req.URL.Query().Get("labelSelector"))
		h.mu.Unlock()
		answer(w, req)
	}), true)
	h.cloud = hubtest.Cloud(t, kube, h.cert)
	h.pool.Tell(t, e)
	h.way = NewWayIn(WayInConfig{
		Node: "edge-1", Pool: hubtest.PoolName, Leads: h.leads.Load, Directory: h.pool.Directory, Cloud: h.cloud,
		Cert: h.cert, Net: h, Connect: h.connect, Clock: h.clock, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = h.cloud.Run(ctx) })
	all.Go(func() { _ = h.way.Run(ctx) })
	h.end = sync.OnceFunc(func() {
		cancel()
		all.Wait()
		h.cloud.Close()
	})
	t.Cleanup(h.end)
	testkit.Until(t, patience, "the cloud to be judged", h.cloud.Healthy)
	return h
}

// DialContext implements uplink.Dials: replicas behind one address take turns.
func (h *leadingHub) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	h.mu.Lock()
	if n := len(h.turn); n > 0 {
		address = h.turn[0]
		h.turn = append(h.turn[1:], address)
	}
	h.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// connect finds an echo at each address of the pool that has the port of a kubelet or 8080.
func (h *leadingHub) connect(_ context.Context, a netip.AddrPort) (net.Conn, error) {
	if a.Port() != reverse.KubeletPort && a.Port() != 8080 {
		return nil, errors.New("nothing is there")
	}
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		_, _ = io.Copy(far, far)
	}()
	return near, nil
}

// until waits for something, and lets time pass at the hub.
func (h *leadingHub) until(what string, ok func() bool) {
	h.t.Helper()
	testkit.Until(h.t, patience, what, func() bool {
		if ok() {
			return true
		}
		h.clock.Step(wayInLooks)
		return false
	})
}

// passes lets n seconds pass at the hub, each once it waits for it.
func (h *leadingHub) passes(n int) {
	h.t.Helper()
	for range n {
		testkit.Until(h.t, patience, "the hub to wait", h.clock.HasWaiters)
		h.clock.Step(wayInLooks)
	}
}

// answers has the cloud answer so from now on.
func (h *leadingHub) answers(f http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer, h.asked = f, nil
}

// queries are those for nodes since answers was called.
func (h *leadingHub) queries() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.asked)
}

// nodes1 answers with one Node.
func nodes1(name, pool string, addresses ...string) http.HandlerFunc {
	return says(`{"items":[` + nodeText(name, pool, addresses...) + `]}`)
}

func nodeText(name, pool string, addresses ...string) string {
	for i, a := range addresses {
		addresses[i] = `{"type":"InternalIP","address":"` + a + `"}`
	}
	return `{"metadata":{"name":"` + name + `","labels":{"` + contract.NodePoolLabel + `":"` + pool +
		`"}},"status":{"addresses":[` + strings.Join(addresses, ",") + `]}}`
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

// echoes checks that a connection is carried in both directions.
func echoes(t testing.TB, c net.Conn) {
	t.Helper()
	go func() { _, _ = io.WriteString(c, "hello") }()
	said := make([]byte, 5)
	if _, err := io.ReadFull(c, said); err != nil || string(said) != "hello" {
		t.Errorf("%q, %v", said, err)
	}
}
