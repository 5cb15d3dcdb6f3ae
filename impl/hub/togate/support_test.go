package togate

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/hubtest"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/testkit"
)

const (
	patience  = time.Minute
	endpoints = "endpointslices.v1.discovery.k8s.io"
	services  = "services.v1."
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// site is a server that has the relays of the cloud, and can be told to refuse them.
type site struct {
	*httptest.Server
	asked atomic.Int32 // whether it is ready

	mu    sync.Mutex
	code  map[string]int // by resource, and "" for whether it is ready; 0: all is well
	said  map[string]int // answers by which a resource was refused
	shown []string       // certificates by which callers were known, each change of them
	open  map[string]int // answers to those who read that are under way, by resource
	end   map[string]context.CancelFunc
}

// newSite serves what kube-apiserver and a gate both have: each resource in one version.
func newSite(t *testing.T) *site {
	t.Helper()
	x := &site{
		code: map[string]int{}, said: map[string]int{}, open: map[string]int{}, end: map[string]context.CancelFunc{},
	}
	var all []*relay.Relay
	for _, name := range []string{endpoints, services} {
		r, err := relay.New(relay.Config{Resource: must(relay.ParseResource(name))})
		check(t, err)
		check(t, r.Replace(100, []*wire.Object{}))
		all = append(all, r)
	}
	inner := hop.NewServer("cloud", scope.NewSet(all...).All, clock.RealClock{})
	x.Server = hubtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		what := ""
		for name, path := range map[string]string{endpoints: "endpointslices", services: "services"} {
			if strings.HasSuffix(req.URL.Path, "/"+path) {
				what = name
			}
		}
		if code := x.answers(what, req); code != 0 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(code)
			return
		}
		if what != "" {
			ctx, done := x.serves(req.Context(), what)
			defer done()
			inner.ServeHTTP(w, req.WithContext(ctx))
		}
	}), true)
	return x
}

// answers notes a request, and says how it is refused.
func (x *site) answers(what string, req *http.Request) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	who := "nobody"
	if len(req.TLS.PeerCertificates) > 0 {
		who = req.TLS.PeerCertificates[0].Subject.CommonName
	}
	if n := len(x.shown); n == 0 || x.shown[n-1] != who {
		x.shown = append(x.shown, who)
	}
	if what == "" && req.URL.Path == "/readyz" {
		x.asked.Add(1)
	}
	if x.code[what] != 0 {
		x.said[what]++
	}
	return x.code[what]
}

// refused is how often a resource was.
func (x *site) refused(what string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.said[what]
}

// serves counts an answer until it is done.
func (x *site) serves(ctx context.Context, what string) (_ context.Context, done func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.open[what]++
	ctx, x.end[what] = context.WithCancel(ctx)
	return ctx, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.open[what]--
	}
}

// refuse has resources answered so from now on, and ends answers that are under way; "" is whether it is ready.
func (x *site) refuse(code int, what ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, name := range what {
		if x.code[name] = code; x.end[name] != nil {
			x.end[name]()
		}
	}
}

// callers are the certificates that were shown, in order.
func (x *site) callers() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.Join(x.shown, ",")
}

// reads reports whether a resource is read here.
func (x *site) reads(what string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.open[what] > 0
}

func (x *site) entry() directory.Gate {
	return directory.Gate{Server: x.URL, Authorities: hubtest.Authorities(x.Server)}
}

// hub is what a hub has of its pool, and the cloud with a gate.
type hub struct {
	t          *testing.T
	cloud      *uplink.Cloud
	kube, gate *site
	sites      []*site
	pool       *hubtest.Pool
	cert       *hubtest.Holder
	clock      *clocktesting.FakeClock // of the gate
	sources    *relayed.Sources
	way        *Gate
	end        func() // of all that runs; it may be called twice
}

// newHub is a hub that leads, and was told of a gate or not.
func newHub(t *testing.T, told bool) *hub {
	t.Helper()
	return newSpreadHub(t, told, 0)
}

// newSpreadHub is newHub with another Spread.
func newSpreadHub(t *testing.T, told bool, spread time.Duration) *hub {
	t.Helper()
	h := &hub{
		t: t, kube: newSite(t), gate: newSite(t), pool: hubtest.NewPool(t), cert: &hubtest.Holder{},
		clock: clocktesting.NewFakeClock(time.Now()),
	}
	h.sites = []*site{h.kube, h.gate}
	logger := slog.New(slog.DiscardHandler)
	h.show("hub-1")
	h.cloud = hubtest.Cloud(t, h.kube.Server, h.cert)
	if told {
		h.tell(h.gate.entry())
	}
	h.sources = &relayed.Sources{
		Feeding: func(bool) {}, Coordinator: func() *hop.Upstream { return nil },
		Cloud: &hop.Upstream{
			Name: "cloud", URL: must(url.Parse(h.kube.URL)), Client: uplink.Client(h.cloud.Way(uplink.ClassPool, uplink.AsHub)),
			Progress: true,
		},
	}
	h.way = New(Config{
		Cloud: h.cloud, Directory: h.pool.Directory, Sources: h.sources, Cert: h.cert, OnBytes: func(int) {},
		Net:    &net.Dialer{},
		Spread: spread, Clock: h.clock, Logger: logger,
	})
	for _, name := range []string{endpoints, services} {
		r, err := relay.New(relay.Config{Resource: must(relay.ParseResource(name)), Late: true})
		check(t, err)
		f, err := relayed.NewFeeder(source.Config{Relay: r, Clock: clock.RealClock{}, Logger: logger}, func() {})
		check(t, err)
		h.sources.Add(f)
	}
	h.run()
	h.eventually("the cloud to be judged", h.cloud.Healthy)
	h.sources.Alone()
	return h
}

// run starts all.
func (h *hub) run() {
	ctx, cancel := context.WithCancel(context.Background())
	all, ctx := errgroup.WithContext(ctx)
	for _, f := range h.sources.All() {
		all.Go(func() error { return f.Run(ctx) })
	}
	all.Go(func() error { return h.cloud.Run(ctx) })
	all.Go(func() error { return h.way.Run(ctx) })
	h.end = sync.OnceFunc(func() {
		cancel()
		if err := all.Wait(); err != nil {
			h.t.Error(err)
		}
		h.cloud.Close()
	})
	h.t.Cleanup(h.end)
}

// tell has the pool told of a gate.
func (h *hub) tell(g directory.Gate) {
	h.t.Helper()
	h.pool.Tell(h.t, directory.Entry{Mode: contract.ModeLeaderHubs, Gate: g})
}

// show gives the hub another certificate.
func (h *hub) show(name string) { h.cert.Show(h.t, name) }

// eventually waits for something.
func (h *hub) eventually(what string, ok func() bool) {
	h.t.Helper()
	testkit.Until(h.t, patience, what, ok)
}

// reads waits until resources are read at a site and nowhere else, and have come.
func (h *hub) reads(at *site, resources ...string) {
	h.t.Helper()
	for _, name := range resources {
		f := h.sources.Named(name)
		want := source.Gate
		if at == h.kube {
			want = "cloud"
		}
		h.eventually(name+" to be read at "+want, func() bool {
			for _, x := range h.sites {
				if x.reads(name) != (x == at) {
					return false
				}
			}
			return f.Status().Upstream == want && f.Relay.Status().Synced
		})
	}
}

// passes lets time pass at the gate once it is waited for.
func (h *hub) passes(d time.Duration) {
	h.t.Helper()
	h.eventually("it to wait", h.clock.HasWaiters)
	h.clock.Step(d)
}

// get asks the gate something, and says who asked.
func (h *hub) get(up *hop.Upstream, path string) {
	h.t.Helper()
	req := must(http.NewRequestWithContext(h.t.Context(), http.MethodGet, up.URL.JoinPath(path).String(), http.NoBody))
	resp, err := up.Client.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
}
