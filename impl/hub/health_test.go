package hub

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

var testPolicy = healthPolicy{interval: 10 * time.Second, timeout: 2 * time.Second, failures: 3, healthy: 2, away: 10 * time.Second, confirm: time.Second}

func TestHealthState(t *testing.T) {
	// Each letter is an answer (g good, b bad) and gives one in the second string (H healthy, U not); then the time until the next probe.
	tests := []struct {
		answers, want string
		next          time.Duration
	}{
		{"g", "H", 10 * time.Second},
		{"b", "U", 250 * time.Millisecond},
		{"bb", "UU", 500 * time.Millisecond},
		{"bbbbbbbbb", "UUUUUUUUU", 10 * time.Second},
		{"gb", "HH", time.Second},
		{"gbb", "HHH", time.Second},
		{"gbbb", "HHHU", time.Second},
		{"gbbg", "HHHH", 10 * time.Second},
		{"gbbgbb", "HHHHHH", time.Second},
		{"gbbbg", "HHHUU", time.Second},
		{"gbbbgg", "HHHUUH", 10 * time.Second},
		{"gbbbgbgg", "HHHUUUUH", 10 * time.Second},
	}
	for _, test := range tests {
		var s healthState
		got := ""
		for _, a := range test.answers {
			s.observe(testPolicy, a == 'g')
			got += map[bool]string{true: "H", false: "U"}[s.ok]
		}
		if next := s.next(testPolicy); got != test.want || next != test.next {
			t.Errorf("%s: got %s, next in %v; want %s, %v", test.answers, got, next, test.want, test.next)
		}
	}
}

// TestChecker: probes follow the clock, a kick makes one due, an idle checker waits for a kick.
func TestChecker(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	answers, probes := make(chan error), make(chan struct{}, 100)
	c := newChecker("server", testPolicy, clock, slog.New(slog.DiscardHandler), func(ctx context.Context) error {
		probes <- struct{}{}
		select {
		case err := <-answers:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	idle := make(chan bool, 1)
	idle <- false
	c.idle = func() bool { v := <-idle; idle <- v; return v }
	changes := make(chan bool, 10)
	c.changed = func() { changes <- c.ok() }
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.run(ctx) }()

	<-probes
	answers <- nil
	if !<-changes {
		t.Error("not healthy after a good answer")
	}
	for i := range 3 {
		eventually(t, "the next probe to be scheduled", clock.HasWaiters)
		if i == 0 {
			c.kick() // not before half a timeout has passed since the last probe
			eventually(t, "the kick to be taken", func() bool { return len(c.kicks) == 0 && clock.Waiters() > 1 })
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
	if j := c.judgement(); !j.Known || j.Healthy || j.Error != "refused" {
		t.Errorf("got %+v", j)
	}
	<-idle
	idle <- true
	eventually(t, "the next probe to be scheduled", clock.HasWaiters)
	eventually(t, "a kick to wake the idle checker", func() bool {
		c.kick()
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
	c := newChecker("server", testPolicy, clock, slog.New(slog.DiscardHandler), nil)
	probed := clock.Now()
	probe := func() { probes, probed = probes+1, clock.Now(); c.observe(answer) }
	// pass lets time pass, a second a step, and probes when it is due.
	pass := func(d time.Duration, each func()) {
		for range int(d / time.Second) {
			clock.Step(time.Second)
			each()
			if c.due(probed, c.state.next(c.policy)) <= 0 {
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
	if !c.ok() {
		t.Fatal("an answer does not make a server healthy of which nothing was known")
	}
	pass(9*time.Second, nothing)
	want("right after an answer", 0)
	pass(time.Second, nothing)
	want("an interval after it", 1)
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
	if c.ok() || probes < 2 {
		t.Error("answers acquit a server that fails probes")
	}
	answer = nil
	probe()
	probe()
	if !c.ok() {
		t.Error("not healthy again")
	}
}

// TestHearing: signs of life are those of the server that an address belongs to, if that is one.
func TestHearing(t *testing.T) {
	parse := func(s string) *url.URL {
		u, err := url.Parse(s)
		check(t, err)
		return u
	}
	own := []*url.URL{parse("https://a.example"), parse("https://[::1]:6443")}
	k := newCloud(cloudConfig{
		servers: map[class][]*url.URL{classPool: {parse("https://one.example:1"), parse("https://one.example:1")}, classNode: own, classHeartbeat: own, classControl: own},
		policy:  testPolicy, roots: &bundle{}, cert: &pair{}, clock: clocktesting.NewFakeClock(time.Now()), logger: slog.New(slog.DiscardHandler),
	})
	for _, test := range []struct {
		class   class
		address string
		want    bool
	}{
		{classNode, "a.example:443", true}, {classControl, "[::1]:6443", true}, {classNode, "b.example:443", false},
		{classPool, "one.example:1", false}, // either server may be behind it
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
	servers := map[class][]*url.URL{}
	for _, c := range classes {
		servers[c] = []*url.URL{u}
	}
	k := newCloud(cloudConfig{servers: servers, policy: testPolicy, roots: &bundle{}, cert: &pair{}, clock: clock, logger: slog.New(slog.DiscardHandler)})
	if got := k.patience(); got != connectPatience {
		t.Errorf("%s before anybody asked", got)
	}
	for _, want := range []time.Duration{connectPatience, connectPatience / 2, 0, 0} {
		if !k.unknown() || k.patience() != want {
			t.Errorf("%s left, want %s", k.patience(), want)
		}
		clock.Step(connectPatience / 2)
	}
}
