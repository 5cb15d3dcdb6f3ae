package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/testkit"
)

// asked is a reviewer for tests.
type asked struct {
	mu      sync.Mutex
	n       int
	allowed bool
	refused *apierrors.StatusError
	err     error
	gate    chan struct{}   // if set, reviews wait for it
	here    bool            // the cloud is not away, whatever the error
	doubt   bool            // nothing is known of the cloud
	lost    context.Context // ends when the cloud is found to be away; nil: it is not
}

// IsAway, AwayBy and Unknown make it the cloud that is asked, too.
func (a *asked) IsAway() (bool, context.Context) {
	if a.lost == nil {
		return false, context.Background()
	}
	return a.lost.Err() != nil, a.lost
}

func (a *asked) AwayBy(error) bool { return !a.here }

func (a *asked) Unknown() bool { return a.doubt }

func (a *asked) review(context.Context, Caller, http.Header, identity.Attributes) (bool, string, *apierrors.StatusError,
	error) {
	if a.gate != nil {
		<-a.gate
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	return a.allowed, "because", a.refused, a.err
}

func (a *asked) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}

// judged is an authorizer that remembers.
func judged(t *testing.T, a *asked, c clock.WithTicker) *Authorizer {
	judge, err := identity.New(identity.Config{
		Node: "edge-1", Cloud: http.DefaultTransport, Callers: http.DefaultTransport, Clock: c,
	})
	check(t, err)
	return NewAuthorizer(AuthorizerConfig{Review: a.review, Cloud: a, Judge: judge, Clock: c, Count: func(string) {}})
}

func token(s string) http.Header { return http.Header{"Authorization": {"Bearer " + s}} }

var listSlices = identity.Attributes{Verb: "list", Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}

// TestAuthorizeTogether: what a token watches is asked again together, if it was used and half of its time is over.
// What is denied then is denied at once.
func TestAuthorizeTogether(t *testing.T) { synctest.Test(t, testTogether) }

func testTogether(t *testing.T) {
	a, denied := &asked{allowed: true}, ""
	clock := clocktesting.NewFakeClock(time.Now())
	z := judged(t, a, clock)
	z.Review = func(ctx context.Context, who Caller, by http.Header, of identity.Attributes) (bool, string,
		*apierrors.StatusError, error) {
		allowed, reason, refused, err := a.review(ctx, who, by, of)
		return allowed && of.Resource != denied, reason, refused, err
	}
	watch := func(by, resource string) bool {
		who, shown := Caller{Kind: Bearer}, token(by)
		if by == "node" {
			who, shown = Caller{Kind: ThisNode}, nil
		}
		return z.Authorize(t.Context(), who, shown, identity.Attributes{
			Verb: "watch", Version: "v1", Resource: resource,
		}) == nil
	}
	want := func(what string, n int) {
		t.Helper()
		synctest.Wait()
		if got := a.count(); got != n {
			t.Errorf("%s: asked %d times, want %d", what, got, n)
		}
	}
	for _, by := range []string{"proxy", "other"} {
		watch(by, "services")
		watch(by, "endpointslices")
		watch(by, "nodes")
	}
	want("new", 6)
	clock.Step(watchTTL / 2)
	watch("proxy", "services")
	watch("proxy", "nodes")
	watch("other", "services")
	want("in use", 6)
	denied = "nodes"
	watch("proxy", "pods")
	want("together with another one", 9) // services and nodes of the same token; nobody used the slices
	nodes := identity.Attributes{Verb: "watch", Version: "v1", Resource: "nodes"}
	key := newKey(Caller{Kind: Bearer}, token("proxy"), nodes)
	<-z.fly(t.Context(), key, Caller{Kind: Bearer}, token("proxy"), nodes, true) // services' answer came after nodes'
	want("denied a moment ago", 9)
	clock.Step(denyTTL)
	if watch("proxy", "nodes") {
		t.Error("what the cloud does not allow any more is allowed as before")
	}
	want("denied", 10)
	clock.Step(watchTTL/2 - denyTTL)
	watch("proxy", "services")
	want("asked not long ago", 10)
	watch("proxy", "endpointslices")
	want("too old", 12) // and services, which were asked about five minutes ago and used since
	watch("proxy", "services")
	watch("proxy", "csidrivers")
	want("nothing else is due", 13)

	watch("node", "services")
	clock.Step(watchTTL / 2)
	watch("node", "services")
	watch("node", "csidrivers")
	want("over a connection that is open in any case", 15)
}

// TestAuthorizeRemembers: allowances for 5 minutes, of watches for 10, denials for 30 seconds, failures not at all.
func TestAuthorizeRemembers(t *testing.T) {
	tests := []struct {
		name  string
		asked *asked
		verb  string
		code  int32
		ttl   time.Duration
	}{
		{"allowed", &asked{allowed: true}, "list", 0, 5 * time.Minute},
		{"allowed to watch", &asked{allowed: true}, "watch", 0, 10 * time.Minute},
		{"denied", &asked{}, "watch", 403, 30 * time.Second},
		{"token refused", &asked{refused: apierrors.NewUnauthorized("Unauthorized")}, "list", 401, 30 * time.Second},
		{"unavailable", &asked{err: &unavailableError{errors.New("cut off")}}, "list", 503, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Now())
			z := judged(t, test.asked, clock)
			ask := func() {
				t.Helper()
				about := listSlices
				about.Verb = test.verb
				got := z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), about)
				if (got == nil) != (test.code == 0) || got != nil && got.ErrStatus.Code != test.code {
					t.Fatalf("got %v, want %d", got, test.code)
				}
			}
			ask()
			ask()
			if n := test.asked.count(); test.ttl > 0 && n != 1 || test.ttl == 0 && n != 2 {
				t.Fatalf("asked %d times", n)
			}
			if test.ttl == 0 {
				return
			}
			clock.Step(test.ttl - 1)
			ask()
			if n := test.asked.count(); n != 1 {
				t.Fatalf("asked %d times before the end", n)
			}
			clock.Step(1)
			ask()
			if n := test.asked.count(); n != 2 {
				t.Errorf("asked %d times after the end", n)
			}
		})
	}
}

// TestAuthorizeOffline: while the cloud is away a verdict is used as long as it is valid, an allowance for 7 days, and
// nothing longer or without one.
func TestAuthorizeOffline(t *testing.T) {
	a := asked{allowed: true}
	clock := clocktesting.NewFakeClock(time.Now())
	z := judged(t, &a, clock)
	ask := func() *apierrors.StatusError {
		return z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices)
	}
	if ask() != nil {
		t.Fatal("not allowed")
	}
	a.allowed, a.err = false, &unavailableError{errors.New("cut off")}
	clock.Step(4 * time.Minute)
	if err := ask(); err != nil {
		t.Errorf("a valid verdict does not count: %v", err)
	}
	clock.Step(2 * time.Minute)
	for range 3 {
		if err := ask(); err != nil {
			t.Errorf("after its end, without the cloud: got %v", err)
		}
	}
	if n := a.count(); n != 2 {
		t.Errorf("asked %d times: each time without a cloud takes long", n)
	}
	other := z.Authorize(t.Context(), Caller{Kind: Bearer}, token("b"), listSlices)
	if other == nil || other.ErrStatus.Code != 503 || other.ErrStatus.Details.RetryAfterSeconds == 0 {
		t.Errorf("nobody allowed that: got %v", other)
	}
	clock.Step(identity.DefaultTTL)
	if err := ask(); err == nil || err.ErrStatus.Code != 503 {
		t.Errorf("after %v: got %v", identity.DefaultTTL, err)
	}
}

// TestAuthorizeInDoubt: a hub that starts while the cloud is silent does not wait for it longer than for a connection,
// if it remembers what the cloud said. That counts for a second: then the cloud is asked again.
func TestAuthorizeInDoubt(t *testing.T) {
	a := asked{allowed: true}
	clock := clocktesting.NewFakeClock(time.Now())
	z := judged(t, &a, clock)
	knownCaller := token("a")
	if err := z.Authorize(t.Context(), Caller{Kind: Bearer}, knownCaller, listSlices); err != nil {
		t.Fatal(err)
	}
	clock.Step(allowTTL)
	var reviews atomic.Int32
	z.Review = func(ctx context.Context, _ Caller, _ http.Header, _ identity.Attributes) (bool, string,
		*apierrors.StatusError, error) {
		reviews.Add(1)
		<-ctx.Done()
		return false, "", nil, &unavailableError{ctx.Err()}
	}
	a.doubt, a.here = true, true // the failure alone would not show that the cloud is away
	answers := make(chan *apierrors.StatusError, 1)
	ask := func(h http.Header) { answers <- z.Authorize(t.Context(), Caller{Kind: Bearer}, h, listSlices) }
	for n := range int32(2) {
		go ask(knownCaller)
		testkit.Until(t, time.Minute, "a review", func() bool { return reviews.Load() == n+1 && clock.HasWaiters() })
		select {
		case err := <-answers:
			t.Fatalf("answered before there could be a connection: %v", err)
		default:
		}
		clock.Step(uplink.ConnectPatience)
		if err := <-answers; err != nil {
			t.Errorf("what the cloud said does not count: %v", err)
		}
		if ask(knownCaller); <-answers != nil || reviews.Load() != n+1 {
			t.Errorf("asked %d times within a moment", reviews.Load())
		}
		clock.Step(doubtTTL)
	}
	var end context.CancelFunc
	z.ctx, end = context.WithCancel(t.Context())
	go ask(token("b"))
	testkit.Until(t, time.Minute, "a review", func() bool { return reviews.Load() == 3 && clock.HasWaiters() })
	clock.Step(uplink.ConnectPatience)
	end()
	if err := <-answers; err == nil || err.ErrStatus.Code != http.StatusServiceUnavailable {
		t.Errorf("nobody knows of it: %v", err)
	}
}

// TestAllowanceIsTakenBack: what the cloud denies later is ignored when it is away again.
func TestAllowanceIsTakenBack(t *testing.T) {
	for code, said := range map[int32]*asked{403: {}, 401: {refused: apierrors.NewUnauthorized("Unauthorized")}} {
		a := asked{allowed: true}
		clock := clocktesting.NewFakeClock(time.Now())
		z := judged(t, &a, clock)
		ask := func() *apierrors.StatusError {
			clock.Step(allowTTL)
			return z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices)
		}
		allowed := ask()
		a.allowed, a.refused = false, said.refused
		first, refused := ask(), ask()
		a.refused, a.err = nil, &unavailableError{errors.New("cut off")}
		if err := ask(); allowed != nil || first == nil || refused == nil || err == nil || err.ErrStatus.Code != code {
			t.Errorf("%d: got %v, %v, %v", code, allowed, refused, err)
		}
	}
}

// TestRefusedInPassing: what the cloud refused once, and then was cut off, is what it had allowed before: at once, and
// by the same answer that is valid while it is there.
func TestRefusedInPassing(t *testing.T) {
	for code, said := range map[int32]*asked{403: {}, 401: {refused: apierrors.NewUnauthorized("Unauthorized")}} {
		a := asked{allowed: true}
		clock := clocktesting.NewFakeClock(time.Now())
		z := judged(t, &a, clock)
		ask := func() *apierrors.StatusError {
			return z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices)
		}
		allowed := ask()
		clock.Step(allowTTL)
		a.allowed, a.refused = false, said.refused
		for range 2 { // the second one is remembered
			if refused := ask(); allowed != nil || refused == nil || refused.ErrStatus.Code != code {
				t.Errorf("%d: got %v, %v", code, allowed, refused)
			}
		}
		gone, lose := context.WithCancel(t.Context())
		lose()
		a.refused, a.err, a.lost = nil, &unavailableError{errors.New("cut off")}, gone
		for range 3 {
			if err := ask(); err != nil {
				t.Errorf("%d, without the cloud: %v", code, err)
			}
		}
	}
}

// TestAuthorizeSeparates: no verdict serves another caller or another question.
func TestAuthorizeSeparates(t *testing.T) {
	var keys []verdictKey
	kinds := []Kind{Anonymous, Bearer, ThisNode}
	headers := []http.Header{
		{}, token("a"), token("b"), {"Authorization": {"Bearer a", "Bearer b"}},
		{
			"Authorization": {"Bearer a"}, "Impersonate-User": {"x"},
		}, {"Authorization": {"Bearer a"}, "Impersonate-User": {"y"}},
		{
			"Authorization": {"Bearer a"}, "Impersonate-Group": {"x"},
		}, {"Authorization": {"Bearer a"}, "Impersonate-Group": {"x", "y"}},
		{"Authorization": {"Bearer a"}, "Impersonate-Extra-Scopes": {"x"}},
		{"Authorization": {"Bearer a"}, "Impersonate-Uid": {"x"}},
	}
	for _, k := range kinds {
		for _, h := range headers {
			keys = append(keys, newKey(Caller{Kind: k}, h, listSlices))
		}
	}
	for _, change := range []func(*identity.Attributes){
		func(a *identity.Attributes) { a.Verb = "watch" }, func(a *identity.Attributes) { a.Group = "" },
		func(a *identity.Attributes) { a.Version = "v1beta1" },
		func(a *identity.Attributes) { a.Resource = "endpoints" }, func(a *identity.Attributes) { a.Namespace = "x" },
		func(a *identity.Attributes) { a.Name = "x" }, func(a *identity.Attributes) { a.Subresource = "log" },
		func(a *identity.Attributes) { a.FieldSelector = "x" }, func(a *identity.Attributes) { a.LabelSelector = "x" },
	} {
		a := listSlices
		change(&a)
		keys = append(keys, newKey(Caller{Kind: Bearer}, token("a"), a))
	}
	unique := map[verdictKey]bool{}
	for _, k := range keys {
		unique[k] = true
	}
	if len(unique) != len(keys) {
		t.Errorf("%d of %d keys are the same", len(keys)-len(unique), len(keys))
	}
	h := token("a")
	h.Set("User-Agent", "kubectl")
	if newKey(Caller{Kind: Bearer}, h, listSlices) != newKey(Caller{Kind: Bearer}, token("a"), listSlices) {
		t.Error("a header that is no credential makes another key")
	}
}

// TestLearn: what a caller was seen to do is asked about once for a while, and counts when the cloud is away.
func TestLearn(t *testing.T) {
	a := asked{allowed: true}
	z := judged(t, &a, clocktesting.NewFakeClock(time.Now()))
	logs := identity.Attributes{Verb: "get", Version: "v1", Resource: "pods", Subresource: "log", Namespace: "a"}
	alice := Caller{Kind: Bearer}
	z.Learn(t.Context(), alice, token("alice"), logs)
	testkit.Until(t, time.Minute, "the cloud to be asked", func() bool { return z.Size() == 1 })
	z.Learn(t.Context(), alice, token("alice"), logs)
	if n := a.count(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	one := logs
	one.Name = "web"
	for name, want := range map[string]bool{"alice": true, "bob": false} {
		if _, refusal := z.Judge.Authorize(token(name), false, one); (refusal == nil) != want {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}

// TestAuthorizeOnce: many who ask the same at once are one review; one who leaves does not end it for the others.
func TestAuthorizeOnce(t *testing.T) {
	a := asked{allowed: true, gate: make(chan struct{})}
	z := judged(t, &a, clocktesting.NewFakeClock(time.Now()))
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan *apierrors.StatusError)
	go func() { left <- z.Authorize(ctx, Caller{Kind: Bearer}, token("a"), listSlices) }()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := z.Authorize(t.Context(), Caller{Kind: Bearer}, token("a"), listSlices); err != nil {
				t.Error(err)
			}
		})
	}
	cancel()
	if err := <-left; err == nil || err.ErrStatus.Code != 503 {
		t.Errorf("who left got %v", err)
	}
	close(a.gate)
	wg.Wait()
	if n := a.count(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestAuthorizeIsBounded: a flood of tokens does not grow the cache without end.
func TestAuthorizeIsBounded(t *testing.T) {
	a := asked{allowed: true}
	z := judged(t, &a, clocktesting.NewFakeClock(time.Now()))
	for i := range limit.MaxVerdicts + 500 {
		if err := z.Authorize(t.Context(), Caller{Kind: Bearer}, token(fmt.Sprint(i)), listSlices); err != nil {
			t.Fatal(err)
		}
	}
	if n := z.Size(); n > limit.MaxVerdicts {
		t.Errorf("%d verdicts are kept", n)
	}
}
