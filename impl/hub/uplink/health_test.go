package uplink

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/testkit"
)

var testPolicy = member.Probing{
	Interval: 10 * time.Second, Timeout: 2 * time.Second, Failures: 3, Healthy: 2, Away: 10 * time.Second,
	Confirm: time.Second, Limit: 2 * time.Second,
}

// TestChecker: probes follow the clock, a kick makes one due, an idle checker waits for a kick.
func TestChecker(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	answers, probes := make(chan error), make(chan struct{}, 100)
	c := NewChecker(CheckerConfig{
		Name: "server", Policy: testPolicy, Clock: clock, Logger: slog.New(slog.DiscardHandler), Changed: func() {},
		Probe: func(ctx context.Context) error {
			probes <- struct{}{}
			select {
			case err := <-answers:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})
	idle := make(chan bool, 1)
	idle <- false
	c.idle = func() bool { v := <-idle; idle <- v; return v }
	changes := make(chan bool, 10)
	c.Changed = func() { changes <- c.OK() }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()

	<-probes
	answers <- nil
	if !<-changes {
		t.Error("not healthy after a good answer")
	}
	for i := range 3 {
		testkit.Until(t, time.Minute, "the next probe to be scheduled", clock.HasWaiters)
		if i == 0 {
			c.Kick() // not before half a timeout has passed since the last probe
			testkit.Until(t, time.Minute, "the kick to be taken", func() bool {
				return len(c.kicks) == 0 && clock.Waiters() > 1
			})
			if len(probes) > 0 {
				t.Error("probed again at once")
			}
		}
		clock.Step(time.Second)
		<-probes
		answers <- errors.New("refused")
	}
	if <-changes {
		t.Error("healthy after three bad answers")
	}
	if j := c.Judgement(); !j.Known || j.Healthy || j.Error != "refused" {
		t.Errorf("got %+v", j)
	}
	<-idle
	idle <- true
	testkit.Until(t, time.Minute, "the next probe to be scheduled", clock.HasWaiters)
	testkit.Until(t, time.Minute, "a kick to wake the idle checker", func() bool {
		c.Kick()
		clock.Step(time.Second)
		return len(probes) > 0
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestSparedProbes: what else is heard of a server takes the place of probes, within bounds.
func TestSparedProbes(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	probes, answer := 0, error(nil)
	c := NewChecker(CheckerConfig{
		Name: "server", Policy: testPolicy, Clock: clock, Logger: slog.New(slog.DiscardHandler), Changed: func() {},
	})
	probed := clock.Now()
	probe := func() { probes, probed = probes+1, clock.Now(); c.observe(answer) }
	// pass lets time pass, a second a step, and probes when it is due.
	pass := func(d time.Duration, each func()) {
		for range int(d / time.Second) {
			clock.Step(time.Second)
			each()
			if c.due(probed, c.state.Next(c.Policy)) <= 0 {
				probe()
			}
		}
	}
	nothing := func() {}
	if at := c.due(probed, time.Hour); at != time.Hour {
		t.Errorf("the first probe is due in %v", at)
	}
	c.want(time.Second)
	if at := c.due(probed, time.Hour); at > time.Second {
		t.Errorf("somebody wants to know: the first probe is due in %v", at)
	}
	c.want(0)
	if at := c.due(probed, time.Hour); at != time.Hour {
		t.Errorf("nobody wants to know any more: the first probe is due in %v", at)
	}
	want := func(what string, n int) {
		t.Helper()
		if probes != n {
			t.Errorf("%s: %d probes, want %d", what, probes, n)
		}
		probes = 0
	}
	c.answered(http.StatusForbidden)
	if !c.OK() {
		t.Fatal("an answer does not make a server healthy of which nothing was known")
	}
	pass(lasting*testPolicy.Interval-time.Second, nothing)
	want("right after an answer", 0)
	pass(time.Second, nothing)
	want("some intervals after it", 1)
	pass(30*time.Second, nothing)
	want("silence", 3)
	pass(5*time.Minute, c.heard)
	want("signs of life", 1) // readiness is asked for all the same
	c.feeds(true)
	pass(time.Minute, c.heard)
	want("signs of life of a server that feeds", 1)
	pass(59*time.Second, func() { c.answered(http.StatusOK) })
	want("answers", 0)
	pass(2*time.Second, func() { c.answered(http.StatusInternalServerError) })
	want("server errors", 1) // the probe was due long ago
	answer = errors.New("not ready")
	pass(9*time.Second, nothing)
	want("the next one", 1)
	pass(10*time.Second, func() { c.answered(http.StatusOK) })
	if c.OK() || probes < 2 {
		t.Error("answers acquit a server that fails probes")
	}
	answer = nil
	probe()
	probe()
	if !c.OK() {
		t.Error("not healthy again")
	}
	answer = &UnreadyError{errors.New("a hook is down")}
	probe()
	probes = 0 // until now
	pass(5*time.Minute, c.heard)
	want("signs of life of a server that is not ready, where there is another one", 30)
	c.lone = true
	pass(5*time.Minute, c.heard)
	want("signs of life of the only server, which is not ready", 5)
}

// TestHearing: signs of life are those of the server that an address belongs to, if that is one.
func TestHearing(t *testing.T) {
	parse := func(s string) *url.URL {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	own := []*url.URL{parse("https://a.example"), parse("https://[::1]:6443")}
	k := NewCloud(CloudConfig{
		Servers: map[Class][]*url.URL{
			ClassPool: {parse("https://one.example:1"), parse("https://one.example:1")}, ClassNode: own, ClassHeartbeat: own,
			ClassControl: own,
		},
		Policy: testPolicy, Roots: &Bundle{}, Node: &Pair{}, Hub: &Pair{}, Clock: clocktesting.NewFakeClock(time.Now()),
		Logger: slog.New(slog.DiscardHandler),
	})
	for _, test := range []struct {
		class   Class
		address string
		want    bool
	}{
		{ClassNode, "a.example:443", true}, {ClassControl, "[::1]:6443", true}, {ClassNode, "b.example:443", false},
		{ClassPool, "one.example:1", false}, // either server may be behind it
	} {
		if got := k.hearing(test.class, test.address) != nil; got != test.want {
			t.Errorf("%s %s: got %v", test.class, test.address, got)
		}
	}
}

// TestPatience: all reads that want to know of the cloud wait together, from the first that did.
func TestPatience(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	u := &url.URL{Scheme: "https", Host: "a.example"}
	servers := map[Class][]*url.URL{}
	for _, c := range Classes {
		servers[c] = []*url.URL{u}
	}
	k := NewCloud(CloudConfig{
		Servers: servers, Policy: testPolicy, Roots: &Bundle{}, Node: &Pair{}, Hub: &Pair{}, Clock: clock,
		Logger: slog.New(slog.DiscardHandler),
	})
	if got := k.Patience(); got != ConnectPatience {
		t.Errorf("%s before anybody asked", got)
	}
	for _, want := range []time.Duration{ConnectPatience, ConnectPatience / 2, 0, 0} {
		if !k.Unknown() || k.Patience() != want {
			t.Errorf("%s left, want %s", k.Patience(), want)
		}
		clock.Step(ConnectPatience / 2)
	}
}

// TestUnreadyIsHealthy: a server that serves and says that it is not ready is healthy, is told of once, and is asked
// again each interval.
func TestUnreadyIsHealthy(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	changes := 0
	c := NewChecker(CheckerConfig{
		Name: "server", Policy: testPolicy, Clock: clock, Logger: slog.New(slog.DiscardHandler),
		Changed: func() { changes++ },
	})
	is := func(healthy, ready bool, told int) {
		t.Helper()
		if j := c.Judgement(); j.Healthy != healthy || j.Ready() != ready || changes != told {
			t.Errorf("got %+v after %d changes, want healthy %v, ready %v, %d", j, changes, healthy, ready, told)
		}
	}
	unready := &UnreadyError{errors.New("GET /readyz: 500")}
	c.observe(nil)
	is(true, true, 1)
	for range 2 * testPolicy.Failures {
		if next := c.observe(unready); next != testPolicy.Interval {
			t.Errorf("asked again in %s", next)
		}
	}
	is(true, false, 2)
	c.heard()
	if due := c.due(clock.Now(), testPolicy.Interval); due != testPolicy.Interval {
		t.Errorf("signs of life spare the probe of a server that is not ready: due in %s", due)
	}
	for range testPolicy.Failures {
		c.observe(errors.New("refused"))
	}
	is(false, false, 3)
	for range testPolicy.Healthy {
		c.observe(unready)
	}
	is(true, false, 4)
	c.observe(nil)
	is(true, true, 5)
}
