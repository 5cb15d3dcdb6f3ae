package gate

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) {
	// Two controllers of k8s.io/apiserver's certificates never shut their queues down, and close what watches their files
	// when they please, with what reads them. Its health logs for ever.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("k8s.io/apimachinery/pkg/util/wait.Forever"),
		goleak.IgnoreAnyFunction("github.com/fsnotify/fsnotify.(*inotify).Close"),
		goleak.IgnoreAnyFunction("github.com/fsnotify/fsnotify.(*inotify).readEvents"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*delayingType[...]).waitingLoop"),
		goleak.IgnoreTopFunction("k8s.io/client-go/util/workqueue.(*Typed[...]).updateUnfinishedWorkLoop"),
		goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
		goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"), // has a time of its own to end
		goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"))
}

const (
	patience       = time.Minute
	endpointSlices = "endpointslices.v1.discovery.k8s.io"
	services       = "services.v1."
	slicesAt       = "/apis/discovery.k8s.io/v1/endpointslices"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func resource(t *testing.T, name string) relay.Resource {
	t.Helper()
	r, err := relay.ParseResource(name)
	check(t, err)
	return r
}

// fronted is a front over relays that a test feeds.
type fronted struct {
	*front
	t      *testing.T
	clock  *clocktesting.FakeClock
	relays map[string]*relay.Relay
	server *httptest.Server
	held   atomic.Int32 // reads that are not over

	mu    sync.Mutex
	stale map[string]int // what was told of it
}

// newFront has relays of slices and services that hold nothing yet.
func newFront(t *testing.T, within time.Duration) *fronted {
	t.Helper()
	x := &fronted{
		t: t, clock: clocktesting.NewFakeClock(time.Now()), relays: map[string]*relay.Relay{}, stale: map[string]int{},
	}
	logger := slog.New(slog.DiscardHandler)
	x.front = &front{within: within, clock: x.clock, logger: logger}
	for _, name := range []string{endpointSlices, services} {
		r, err := relay.New(relay.Config{Resource: resource(t, name), Clock: x.clock, Gather: -1, Logger: logger})
		check(t, err)
		x.relays[name] = r
		x.resources = append(x.resources, r.Resource())
	}
	x.resources = append(x.resources, resource(t, "nodes.v1.")) // of which there is no relay
	x.reads = func(name string) (*relay.Relay, func()) {
		x.held.Add(1)
		return x.relays[name], func() { x.held.Add(-1) }
	}
	x.front.stale = func(name string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.stale[name]++
	}
	x.next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	info := &genericrequest.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	x.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		is, err := info.NewRequestInfo(req)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		x.front.ServeHTTP(w, req.WithContext(genericrequest.WithRequestInfo(req.Context(), is)))
	}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.run(ctx) }()
	t.Cleanup(func() {
		cancel()
		check(t, <-done)
		x.server.CloseClientConnections()
		x.server.Close()
		if n := x.held.Load(); n != 0 {
			t.Errorf("%d reads were never over", n)
		}
		if n := len(x.open); n != 0 {
			t.Errorf("%d relays are read by nobody", n)
		}
	})
	return x
}

// toldOf counts how often readers of a resource were told that it is behind.
func (x *fronted) toldOf(name string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stale[name]
}

// comes has a relay hold nothing of a version.
func (x *fronted) comes(name string) {
	x.t.Helper()
	check(x.t, x.relays[name].Replace(100, []*wire.Object{}))
}

// passes lets time pass, and has the front look.
func (x *fronted) passes(d time.Duration) {
	x.t.Helper()
	x.eventually("the front to wait", x.clock.HasWaiters)
	x.clock.Step(d)
	x.look()
}

func (x *fronted) eventually(what string, ok func() bool) {
	x.t.Helper()
	testkit.Until(x.t, patience, what, ok)
}

// answer is one that has come.
type answer struct {
	code   int
	header http.Header
	status metav1.Status
}

func (x *fronted) do(method, path string) (a answer) {
	x.t.Helper()
	req, err := http.NewRequestWithContext(x.t.Context(), method, x.server.URL+path, http.NoBody)
	check(x.t, err)
	resp, err := x.server.Client().Do(req)
	check(x.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check(x.t, err)
	_ = json.Unmarshal(body, &a.status)
	a.code, a.header = resp.StatusCode, resp.Header
	return a
}

// behind wants the answer of a gate that is behind.
func (x *fronted) wantBehind(path, why string) {
	x.t.Helper()
	a := x.do(http.MethodGet, path)
	if a.code != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "5" ||
		a.status.Reason != metav1.StatusReasonServiceUnavailable || a.status.Details == nil ||
		a.status.Details.RetryAfterSeconds != 5 || !strings.Contains(a.status.Message, why) {
		x.t.Errorf("%s: %d, Retry-After %q, %+v; want 503: %s", path, a.code, a.header.Get("Retry-After"), a.status, why)
	}
}

// watch opens a watch, and gives a channel that is closed when it has ended.
func (x *fronted) watch(path string) <-chan struct{} {
	x.t.Helper()
	req, err := http.NewRequestWithContext(x.t.Context(), http.MethodGet, x.server.URL+path+"?watch=1&resourceVersion=100",
		http.NoBody)
	check(x.t, err)
	resp, err := x.server.Client().Do(req)
	check(x.t, err)
	if resp.StatusCode != http.StatusOK {
		x.t.Fatalf("%s: %s", path, resp.Status)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer resp.Body.Close()
		_, _ = bufio.NewReader(resp.Body).WriteTo(io.Discard)
	}()
	return ended
}

func isOver(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// TestFront: only reads of named resources are answered from relays.
func TestFront(t *testing.T) {
	x := newFront(t, time.Minute)
	x.comes(endpointSlices)
	x.comes(services)
	for _, c := range []struct {
		method, path string
		code         int
	}{
		{"GET", slicesAt, 200},
		{"GET", "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices", 200},
		{"GET", "/api/v1/services", 200},
		{"GET", "/api/v1/namespaces/a/services/b", 404}, // it is not there

		{"GET", "/api/v1/secrets", 404},
		{"GET", "/api/v1/namespaces/kube-system/secrets/a", 404},
		{"GET", "/api/v1/configmaps", 404},
		{"GET", "/apis/coordination.k8s.io/v1/leases", 404},
		{"GET", "/api/v1/endpoints", 404},
		{"GET", "/apis/discovery.k8s.io/v1beta1/endpointslices", 404},
		{"GET", "/apis/example.com/v1/endpointslices", 404},
		{"GET", "/api/v1/endpointslices", 404},
		{"GET", "/apis/discovery.k8s.io/v1/services", 404},
		{"GET", "/api/v1/namespaces/a/services/b/status", 404},
		{"GET", "/api/v1/namespaces/a/services/b/proxy", 404},
		{"GET", "/api/v1/namespaces/a/services/b/proxy/c", 404},
		{"GET", "/api/v1/proxy/namespaces/a/services/b", 404},
		{"GET", "/api/v1/namespaces/a/services//proxy", 404},
		{"GET", "/api/v1/namespaces/a/services/b/status/c/d", 404},
		{"GET", "/api/v1/watch/services", 404}, // as at a relay of a pool
		{"GET", "/api/v1/namespaces", 404},     // though services of one are read

		{"POST", "/api/v1/namespaces/a/services", 405},
		{"PUT", "/api/v1/namespaces/a/services/b", 405},
		{"PATCH", "/api/v1/namespaces/a/services/b", 405},
		{"DELETE", "/api/v1/namespaces/a/services/b", 405},
		{"DELETE", slicesAt, 405},
		{"HEAD", slicesAt, 405},
		{"OPTIONS", slicesAt, 405},
		{"POST", "/api/v1/secrets", 404},
		{"PUT", "/api/v1/namespaces/a/services/b/status", 404},

		{"GET", "/healthz", http.StatusTeapot},
		{"GET", "/metrics", http.StatusTeapot},
		{"GET", "/api", http.StatusTeapot},
		{"GET", "/apis/discovery.k8s.io/v1", http.StatusTeapot},
		{"POST", "/", http.StatusTeapot},
	} {
		a := x.do(c.method, c.path)
		if a.code != c.code {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, a.code, c.code)
		}
		if a.code >= 400 && a.code != http.StatusTeapot && c.method != "HEAD" && a.status.Status != metav1.StatusFailure {
			t.Errorf("%s %s: %d without a Status: %+v", c.method, c.path, a.code, a.status)
		}
	}
	if a := x.do("GET", slicesAt); a.header.Get(contract.AgeHeader) != "0" {
		t.Errorf("%s is %q", contract.AgeHeader, a.header.Get(contract.AgeHeader))
	}
	x.passes(20 * time.Second)
	if a := x.do("GET", slicesAt); a.header.Get(contract.AgeHeader) != "20" {
		t.Errorf("%s is %q", contract.AgeHeader, a.header.Get(contract.AgeHeader))
	}
	if n := x.toldOf(endpointSlices) + x.toldOf(services); n != 0 {
		t.Errorf("readers were sent away %d times", n)
	}
	x.wantBehind("/api/v1/nodes", "nodes.v1. is not relayed yet")
	if n := x.toldOf("nodes.v1."); n != 1 {
		t.Errorf("%d", n)
	}
	bare := httptest.NewRecorder()
	x.front.ServeHTTP(bare, httptest.NewRequestWithContext(t.Context(), http.MethodGet, slicesAt, http.NoBody))
	if bare.Code != http.StatusTeapot {
		t.Errorf("a request that nobody has looked at: %d", bare.Code)
	}
}

// TestUnsynced: a relay that holds nothing within the time is not served, and one that comes in time is. A request
// waits for that, and for no other relay.
func TestUnsynced(t *testing.T) {
	x := newFront(t, 50*time.Millisecond)
	x.comes(services)
	x.wantBehind(slicesAt, "endpointslices.v1.discovery.k8s.io has not been read from kube-apiserver yet")
	x.wantBehind(slicesAt+"?watch=1", "not been read")
	if a := x.do("GET", "/api/v1/services"); a.code != http.StatusOK {
		t.Errorf("another relay: %d", a.code)
	}
	if n := x.toldOf(endpointSlices); n != 2 {
		t.Errorf("readers were sent away %d times", n)
	}
	patient := newFront(t, time.Hour)
	code := make(chan int, 1)
	go func() { code <- patient.do("GET", slicesAt).code }()
	patient.eventually("the request to wait", func() bool { return patient.held.Load() == 1 })
	patient.comes(endpointSlices)
	if got := testkit.Value(t, patience, "the answer", code); got != http.StatusOK {
		t.Errorf("a request that has waited: %d", got)
	}
	if n := patient.toldOf(endpointSlices); n != 0 {
		t.Errorf("readers were sent away %d times", n)
	}
}

// TestBehind: when kube-apiserver shows no sign of a resource, its watches end and nobody reads it, until there is one.
// Another resource goes on.
func TestBehind(t *testing.T) {
	const within = 30 * time.Second
	x := newFront(t, within)
	x.comes(endpointSlices)
	x.comes(services)
	all := []<-chan struct{}{x.watch(slicesAt), x.watch("/apis/discovery.k8s.io/v1/namespaces/a/endpointslices")}
	other := x.watch("/api/v1/services")
	x.eventually("three readers", func() bool {
		n := x.readersOf()
		return n[endpointSlices] == 2 && n[services] == 1
	})
	x.passes(within)
	if x.toldOf(endpointSlices) != 0 || isOver(all[0]) || x.do("GET", slicesAt).code != http.StatusOK {
		t.Error("it is behind before its time")
	}
	x.relays[services].Lives(x.clock.Now())
	x.passes(time.Nanosecond)
	for _, ended := range all {
		testkit.Value(t, patience, "a watch of what is behind to end", ended)
	}
	if isOver(other) {
		t.Error("a watch of another resource has ended")
	}
	if n := x.toldOf(endpointSlices); n != 1 {
		t.Errorf("told %d times that its readers are sent away", n)
	}
	x.wantBehind(slicesAt, "no sign of endpointslices.v1.discovery.k8s.io for 30s")
	x.wantBehind(slicesAt+"?watch=1&resourceVersion=100", "no sign")
	x.wantBehind("/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/b", "no sign")
	if n := x.toldOf(endpointSlices); n != 4 {
		t.Errorf("told %d times that its readers are sent away", n)
	}
	x.eventually("nobody to read it", func() bool { return x.readersOf()[endpointSlices] == 0 })
	if a := x.do("GET", "/api/v1/services"); a.code != http.StatusOK {
		t.Errorf("another resource: %d", a.code)
	}
	x.passes(time.Second)
	x.relays[endpointSlices].Lives(x.clock.Now())
	if a := x.do("GET", slicesAt); a.code != http.StatusOK {
		t.Errorf("after a sign of life: %d", a.code)
	}
	again := x.watch(slicesAt)
	x.eventually("a reader", func() bool { return x.readersOf()[endpointSlices] == 1 })
	x.passes(time.Second)
	if isOver(again) {
		t.Error("a watch has ended of what is served again")
	}
	x.passes(within)
	testkit.Value(t, patience, "the watch to end, the second time", again)
	testkit.Value(t, patience, "the other to end, as no sign comes of it", other)
}

// TestLooks: it is looked without anybody who asks, each second.
func TestLooks(t *testing.T) {
	x := newFront(t, 30*time.Second)
	x.comes(endpointSlices)
	ended := x.watch(slicesAt)
	x.eventually("a reader", func() bool { return x.readersOf()[endpointSlices] == 1 })
	x.eventually("the front to wait", x.clock.HasWaiters)
	x.clock.Step(time.Minute)
	testkit.Value(t, patience, "the watch to end", ended)
}

// TestDenied: what kube-apiserver does not give the gate is answered so, and not by 503: a hub asks kube-apiserver for
// that alone.
func TestDenied(t *testing.T) {
	x := newFront(t, 30*time.Second)
	x.comes(endpointSlices)
	ended := x.watch(slicesAt)
	group := schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"}
	for code, why := range map[int]error{
		http.StatusForbidden: apierrors.NewForbidden(group, "", errors.New("no grant")),
		http.StatusNotFound:  apierrors.NewNotFound(group, ""),
	} {
		x.relays[endpointSlices].Deny(why)
		testkit.Value(t, patience, "the watch to end", ended)
		if a := x.do("GET", slicesAt); a.code != code {
			t.Errorf("%d, want %d", a.code, code)
		}
		x.passes(time.Hour)
		if a := x.do("GET", slicesAt); a.code != code {
			t.Errorf("later: %d, want %d", a.code, code)
		}
	}
	x.relays[services].Deny(apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, ""))
	if a := x.do("GET", "/api/v1/services"); a.code != http.StatusNotFound {
		t.Errorf("of what nothing has ever come: %d", a.code)
	}
	if n := x.toldOf(endpointSlices) + x.toldOf(services); n != 0 {
		t.Errorf("readers were sent away %d times", n)
	}
	x.comes(endpointSlices)
	if a := x.do("GET", slicesAt); a.code != http.StatusOK {
		t.Errorf("when it is given again: %d", a.code)
	}
}
