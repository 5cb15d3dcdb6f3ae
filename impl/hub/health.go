package hub

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// healthPolicy says how many answers make a server healthy or not.
type healthPolicy struct {
	interval time.Duration // between probes of a healthy server
	timeout  time.Duration // of one probe
	failures int           // in a row that make a healthy server unhealthy
	healthy  int           // good ones in a row that make an unhealthy server healthy
}

// healthState judges one server by its answers. It is pure.
type healthState struct {
	known, ok  bool
	fails, oks int // in a row
}

// observe takes one answer. The very first one decides at once: there is nothing to hold against it.
func (s *healthState) observe(p healthPolicy, good bool) {
	if good {
		s.oks, s.fails = s.oks+1, 0
	} else {
		s.fails, s.oks = s.fails+1, 0
	}
	switch {
	case !s.known:
		s.known, s.ok = true, good
	case s.ok && s.fails >= p.failures:
		s.ok = false
	case !s.ok && s.oks >= p.healthy:
		s.ok = true
	}
}

// next is the time until the next probe: the interval while all is well, short while the judgement may change, and growing
// while a server stays away.
func (s *healthState) next(p healthPolicy) time.Duration {
	switch {
	case s.ok && s.fails == 0:
		return p.interval
	case s.ok || s.oks > 0:
		return p.timeout / 2
	}
	return min(p.interval, p.timeout/8<<min(s.fails-1, 10))
}

// checker probes one server and judges it.
type checker struct {
	name    string
	policy  healthPolicy
	clock   clock.WithTicker
	logger  *slog.Logger
	probe   func(ctx context.Context) error
	idle    func() bool // true: nobody needs to know; wait for a kick. nil: never
	changed func()      // called without locks after each change of the judgement
	kicks   chan struct{}

	mu        sync.Mutex
	state     healthState
	lastError string
	since     time.Time
}

func newChecker(name string, p healthPolicy, c clock.WithTicker, logger *slog.Logger, probe func(context.Context) error) *checker {
	return &checker{name: name, policy: p, clock: c, logger: logger, probe: probe, changed: func() {}, kicks: make(chan struct{}, 1)}
}

// run probes until ctx ends.
func (c *checker) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if c.idle != nil && c.idle() {
			select {
			case <-ctx.Done():
				return nil
			case <-c.kicks:
			}
		}
		began := c.clock.Now()
		probing, cancel := context.WithTimeout(ctx, c.policy.timeout)
		err := c.probe(probing)
		cancel()
		var next time.Duration
		if ctx.Err() == nil { // else the probe was cut short
			next = c.observe(err)
		}
		timer := c.clock.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-c.kicks:
			sleep(ctx, c.clock, c.policy.timeout/2-c.clock.Since(began)) // many requests that fail are one reason to probe
		}
		timer.Stop()
	}
	return nil
}

func (c *checker) observe(err error) (next time.Duration) {
	c.mu.Lock()
	before := c.state
	c.state.observe(c.policy, err == nil)
	turned := c.state.known != before.known || c.state.ok != before.ok
	c.lastError = ""
	if err != nil {
		c.lastError = err.Error()
	}
	if turned {
		c.since = c.clock.Now()
	}
	ok, next := c.state.ok, c.state.next(c.policy)
	c.mu.Unlock()
	if turned {
		if ok {
			c.logger.Info("healthy", "server", c.name)
		} else {
			c.logger.Warn("not healthy", "server", c.name, "err", err)
		}
		c.changed()
	}
	return next
}

// kick makes the next probe due now, or soon if there was one just now. It never blocks.
func (c *checker) kick() {
	select {
	case c.kicks <- struct{}{}:
	default:
	}
}

// judgement is what is known of a server.
type judgement struct {
	Known   bool      `json:"-"`
	Healthy bool      `json:"healthy"`
	Since   time.Time `json:"since,omitzero"`
	Error   string    `json:"error,omitempty"`
}

func (c *checker) judgement() judgement {
	c.mu.Lock()
	defer c.mu.Unlock()
	return judgement{Known: c.state.known, Healthy: c.state.ok, Since: c.since, Error: c.lastError}
}

func (c *checker) ok() bool { return c.judgement().Healthy }
