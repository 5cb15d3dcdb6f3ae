package access

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/testkit"
)

func newTestGate() (*Gate, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(time.Now())
	return NewGate(GateConfig{
		Rate: 10, Burst: 10, Cloud: &asked{}, Clock: clk, Count: func(string) {}, Logger: slog.New(slog.DiscardHandler),
	}), clk
}

// TestReviewsBounded: whoever begins reviews and leaves has no more than a bound of them under way or waiting, and the
// node waits for none.
func TestReviewsBounded(t *testing.T) {
	g, _ := newTestGate()
	var underWay, most atomic.Int64
	leave := make(chan struct{})
	review := g.Limited(func(_ context.Context, who Caller, _ http.Header, _ identity.Attributes) (bool, string,
		*apierrors.StatusError, error) {
		if who.Kind == ThisNode {
			return true, "", nil, nil
		}
		n := underWay.Add(1)
		defer underWay.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-leave
		return true, "", nil, nil
	})
	var busy, good atomic.Int64
	var wg sync.WaitGroup
	for i := range 1000 {
		wg.Go(func() {
			_, _, _, err := review(t.Context(), Caller{Kind: Bearer}, http.Header{"Authorization": {fmt.Sprint("Bearer t", i)}},
				identity.Attributes{})
			switch {
			case err == nil:
				good.Add(1)
			case BusyStatus(err) != nil:
				busy.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	testkit.Until(t, time.Minute, "all that may to be under way", func() bool {
		return underWay.Load() == limit.ParallelReviews && busy.Load() == 1000-limit.MaxCallerReviews
	})
	if ok, _, _, err := review(t.Context(), Caller{Kind: ThisNode}, http.Header{}, identity.Attributes{}); !ok ||
		err != nil {
		t.Errorf("the node: %t, %v", ok, err)
	}
	close(leave)
	wg.Wait()
	if most.Load() != limit.ParallelReviews || good.Load() != limit.MaxCallerReviews || g.Reviews.Held() != 0 {
		t.Errorf("%d at once, %d good, %d left", most.Load(), good.Load(), g.Reviews.Held())
	}
}

// TestTrust: few unknown tokens go unasked at once, and few requests with each.
func TestTrust(t *testing.T) {
	g, clk := newTestGate()
	token := func(i int) digest { return tokenOf(http.Header{"Authorization": {fmt.Sprint("Bearer t", i)}}).digest }
	passes := func(i int) bool { ok, _ := g.trusted.begin(token(i)); return ok }
	for i := range 2 * limit.MaxTrusting {
		for n := range limit.MaxTrusted {
			if got, want := passes(i), i < limit.MaxTrusting; got != want {
				t.Errorf("token %d, request %d: %t", i, n, got)
			}
		}
	}
	ok, wait := g.trusted.begin(token(0))
	if ok || wait == nil {
		t.Fatalf("one request more with a token: %t, it waits: %t", ok, wait != nil)
	}
	g.trusted.end(token(0), true)
	<-wait
	if !passes(0) || passes(0) {
		t.Error("an answer makes room for one")
	}
	for range limit.MaxTrusted {
		g.trusted.end(token(0), true)
	}
	if !passes(100) || passes(0) || len(g.trusted.tokens) != limit.MaxTrusting {
		t.Errorf("%d tokens after one was answered", len(g.trusted.tokens))
	}
	g.trusted.end(token(100), false)
	if passes(0) {
		t.Error("a token that was left before its answer makes room at once")
	}
	if !passes(100) || passes(100) {
		t.Error("a request that was left counts with its token")
	}
	g.trusted.end(token(100), true)
	clk.Step(limit.TrustTime)
	if !passes(0) || passes(101) || len(g.trusted.tokens) != limit.MaxTrusting {
		t.Errorf("%d tokens a while after one was left", len(g.trusted.tokens))
	}
}

// TestNobodyWaitsForACloudThatIsAway: requests with an unknown token wait for others with it, and for what the cloud
// says of it, only as long as the cloud is there. Those others may be answered here, and stay.
func TestNobodyWaitsForACloudThatIsAway(t *testing.T) {
	for name, suspicious := range map[string]bool{"for others": false, "for a proof": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lost, lose := context.WithCancel(t.Context())
				hole, fill := context.WithCancel(t.Context())
				g := NewGate(GateConfig{
					Rate: 10, Burst: 10, Cloud: &asked{lost: lost}, Clock: clock.RealClock{}, Count: func(string) {},
					Logger: slog.New(slog.DiscardHandler), Unproven: silent{hole},
				})
				if suspicious {
					g.prove.suspect()
				}
				const more = 5
				passed := make(chan *apierrors.StatusError, limit.MaxTrusted+more)
				for range cap(passed) {
					go func() {
						req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/services?watch=1", http.NoBody)
						req.Header.Set("Authorization", "Bearer t")
						_, a, refusal := g.Admit(httptest.NewRecorder(), req, request.Parse(req), Caller{Kind: Bearer}, false)
						passed <- refusal
						<-t.Context().Done()
						a.Leave()
					}()
				}
				synctest.Wait()
				if n := len(passed); n > limit.MaxTrusted {
					t.Errorf("%d requests with an unknown token pass unasked", n)
				}
				lose()
				synctest.Wait()
				if n := len(passed); n != cap(passed) {
					t.Errorf("%d of %d pass when the cloud is away", n, cap(passed))
				}
				for range len(passed) {
					if refusal := <-passed; refusal != nil {
						t.Error(refusal)
					}
				}
				fill()
			})
		})
	}
}

// silent is a cloud that says nothing until its context ends.
type silent struct{ until context.Context }

func (s silent) RoundTrip(*http.Request) (*http.Response, error) {
	<-s.until.Done()
	return nil, s.until.Err()
}

// TestRefusalsAreTold: the log says a reason once a minute, whatever is refused.
func TestRefusalsAreTold(t *testing.T) {
	g, clk := newTestGate()
	var log strings.Builder
	g.Logger = slog.New(slog.NewTextHandler(&log, nil))
	lines := func() int { return strings.Count(log.String(), "\n") }
	for range 10_000 {
		g.refuse(refusedRate)
	}
	g.refuse(RefusedAnonymous)
	if n := lines(); n != 2 {
		t.Errorf("%d lines for two reasons", n)
	}
	clk.Step(limit.TellRefused)
	g.refuse(refusedRate)
	g.refuse(refusedRate)
	if n := lines(); n != 3 {
		t.Errorf("%d lines a minute later", n)
	}
}

// TestPublicPaths: they are what everybody may see, however they are written.
func TestPublicPaths(t *testing.T) {
	for path, want := range map[string]bool{
		"/version": true, "/version/": true, "/healthz": true, "/readyz/ping": true, "/livez/": true,
		"/": false, "/versions": false, "/healthz/../api": false, "//version": false, "/version//x": false,
		"/api/version": false, "/metrics": false,
	} {
		req, err := http.NewRequest(http.MethodGet, "https://hub"+path, nil)
		check(t, err)
		if got := isPublic(req); got != want {
			t.Errorf("%s: %t", path, got)
		}
		req.Method = http.MethodPost
		if isPublic(req) {
			t.Errorf("POST %s", path)
		}
	}
}
