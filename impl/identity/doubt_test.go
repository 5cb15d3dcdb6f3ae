package identity

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/testkit"
)

// asking is a bed whose judge may ask the cloud again.
type asking struct {
	*bed
	mu    sync.Mutex
	code  int // that the cloud answers; 0: none
	away  bool
	broke time.Time
	asked []string
}

func newAsking(t *testing.T) *asking {
	x := &asking{bed: newBed(t, nil)}
	x.start(func(c *Config) {
		c.Away = func() bool { x.mu.Lock(); defer x.mu.Unlock(); return x.away }
		c.Unbroken = func() time.Duration { x.mu.Lock(); defer x.mu.Unlock(); return x.clock.Since(x.broke) }
		c.Ask = func(_ context.Context, credentials http.Header, certified bool, a Attributes) (int, error) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.asked = append(x.asked, fmt.Sprint(a, credentials, certified))
			if x.code == 0 {
				return 0, errors.New("no answer")
			}
			return x.code, nil
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- x.askAgain(ctx) }()
	t.Cleanup(func() { cancel(); check(t, <-done) })
	return x
}

func (x *asking) set(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

func (x *asking) count() (n int) {
	x.set(func() { n = len(x.asked) })
	return n
}

// pass lets some time pass, a step at a time, until a condition holds.
func (x *asking) pass(what string, cond func() bool) {
	x.t.Helper()
	testkit.Until(x.t, time.Minute, what, func() bool {
		if cond() {
			return true
		}
		x.clock.Step(Stands / 10)
		return false
	})
}

// TestTheHubAsksAgain: what was allowed, and then denied once to a caller who never asked again, is asked by the hub
// itself. Then it stands, or was one in passing.
func TestTheHubAsksAgain(t *testing.T) {
	secret := read("/api/v1/namespaces/a/secrets/x")
	for _, denied := range []int{http.StatusForbidden, http.StatusUnauthorized} {
		for _, again := range []int{http.StatusOK, denied} {
			t.Run(fmt.Sprint(denied, ", then ", again), func(t *testing.T) {
				x := newAsking(t)
				who := withToken("static")
				who.Header.Set("Cookie", "x")
				x.set(func() { x.code = again })
				x.Learn(who.Header, false, secret, http.StatusOK)
				x.Learn(who.Header, false, secret, denied)
				if x.Doubts() != 1 {
					t.Fatalf("%d doubts", x.Doubts())
				}
				before := x.clock.Now()
				x.pass("the doubt to end", func() bool { return x.Doubts() == 0 })
				if n := x.count(); n != 1 || x.clock.Since(before) < Stands {
					t.Errorf("asked %d times, after %v", n, x.clock.Since(before))
				}
				asked := secret
				if denied == http.StatusUnauthorized {
					asked = read("/version")
				}
				if want := fmt.Sprint(asked, http.Header{"Authorization": {"Bearer static"}}, false); x.asked[0] != want {
					t.Errorf("asked %s, want %s", x.asked[0], want)
				}
				x.clock.Step(RefusedFor)
				_, refusal := x.authorizeRequest(who, secret)
				if (refusal == nil) != (again == http.StatusOK) || refusal != nil && int(refusal.ErrStatus.Code) != denied {
					t.Errorf("without the cloud: %v", refusal)
				}
			})
		}
	}
}

// TestNothingToAsk: the hub does not ask about what nobody was allowed, nor what the caller has heard since, nor about
// more than some denials; not while the cloud is away, and not for ever.
func TestNothingToAsk(t *testing.T) {
	x := newAsking(t)
	node, secret := carrying("Test-Node", "yes"), read("/api/v1/namespaces/a/secrets/x")
	x.Learn(node.Header, true, secret, http.StatusForbidden)
	if x.Doubts() != 0 {
		t.Error("who never had it is asked about")
	}
	x.Learn(node.Header, true, secret, http.StatusOK)
	x.Learn(node.Header, true, secret, http.StatusForbidden)
	x.Learn(node.Header, true, secret, http.StatusOK)
	x.pass("the doubt to end", func() bool { return x.Doubts() == 0 })
	if n := x.count(); n != 0 {
		t.Errorf("asked %d times", n)
	}
	for i := range maxDoubts + 10 {
		a := read(fmt.Sprintf("/api/v1/namespaces/a/secrets/x-%d", i))
		x.Learn(node.Header, true, a, http.StatusOK)
		x.Learn(node.Header, true, a, http.StatusForbidden)
	}
	if n := x.Doubts(); n != maxDoubts {
		t.Errorf("%d doubts", n)
	}
	x.set(func() { x.away = true })
	for range 100 {
		x.clock.Step(Stands / 10)
	}
	if n := x.count(); n != 0 {
		t.Errorf("asked %d times while the cloud is away", n)
	}
	x.set(func() { x.away = false })
	x.pass("the hub to give up", func() bool { return x.Doubts() == 0 })
	if n := x.count(); n != maxAsked*maxDoubts {
		t.Errorf("asked %d times", n)
	}
	if _, refusal := x.authorizeRequest(node, secret); refusal != nil {
		t.Error(refusal)
	}
}

// TestAsksAfterABreak: an answer after a break of the link is the first one again.
func TestAsksAfterABreak(t *testing.T) {
	x := newAsking(t)
	node, secret := carrying("Test-Node", "yes"), read("/api/v1/namespaces/a/secrets/x")
	x.set(func() { x.code = http.StatusForbidden })
	x.Learn(node.Header, true, secret, http.StatusOK)
	x.Learn(node.Header, true, secret, http.StatusForbidden)
	x.clock.Step(2 * time.Second)
	x.set(func() { x.broke = x.clock.Now() })
	x.pass("the first question", func() bool { return x.count() == 1 })
	if d := x.decide(x.node, secret); d != allowed {
		t.Errorf("two servers have denied it, one after the other: %v", d)
	}
	x.pass("the doubt to end", func() bool { return x.Doubts() == 0 })
	if d := x.decide(x.node, secret); d != denied || x.count() != 2 {
		t.Errorf("%v, after %d questions", d, x.count())
	}
}
