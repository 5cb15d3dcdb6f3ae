package uplink

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/process"
)

// A sign of life takes the place of probes for some intervals. Heartbeats, and whatever else fails, call for a probe at
// once (Kick), and so does a pool that nobody leads: so a cut is found as soon, and a quiet link carries less.
const lasting = 3

// For how many intervals signs of life can take the place of probes, however many come. They show that link and server
// work, but not that the server finds itself ready: who is fed by a server that has lost its etcd has to know soon, all
// others learn it from errors.
const (
	spared    = 30
	sparedFed = 6
)

// CheckerConfig is what a checker is made of.
type CheckerConfig struct {
	Name    string
	Named   func() string // its name where that may change; nil: Name
	Policy  member.Probing
	Clock   clock.WithTicker
	Logger  *slog.Logger
	Probe   func(ctx context.Context) error // nil or an UnreadyError: the server serves
	Several func() bool                     // a probe finds the next server when one is gone; nil: there is one
	lone    bool                            // there is no other server: whether this one is ready chooses nothing
	grace   time.Duration                   // before the first probe, in which an answer to somebody else spares it
	idle    func() bool                     // true: nobody needs to know; wait for a kick. nil: never
	Changed func()                          // called without locks after each change of the judgement
}

// Checker judges one server: by probes, and by what else is heard of it.
type Checker struct {
	CheckerConfig
	fed     atomic.Bool // relays are fed by it
	kicks   chan struct{}
	news    chan struct{} // the next probe may be due at another time
	born    time.Time
	heardAt atomic.Int64 // the last sign of life, as time since born

	mu        sync.Mutex
	state     member.Health
	doubted   bool // signs of life are ignored before the next probe
	within    time.Duration
	wanted    time.Time // when the first probe is due because somebody has to know; zero: nobody has
	lastError string
	lastCause string // of lastError, as a digest says it
	unready   string // what the server said of itself last, although it serves; "": it is ready
	since     time.Time
}

// UnreadyError is the outcome of a probe of a server that serves, and says of itself that it is not ready. It is a good
// answer: it never makes a server unhealthy. It only counts where there is a choice among servers.
type UnreadyError struct{ Because error }

func (e *UnreadyError) Error() string { return "it serves, but is not ready: " + e.Because.Error() }

func (e *UnreadyError) Unwrap() error { return e.Because }

// NewChecker makes a checker that knows nothing yet.
func NewChecker(c CheckerConfig) *Checker {
	return &Checker{CheckerConfig: c, kicks: make(chan struct{}, 1), news: make(chan struct{}, 1), born: c.Clock.Now()}
}

// Run probes until ctx ends.
func (c *Checker) Run(ctx context.Context) error {
	c.rest(ctx, c.Clock.Now(), c.grace)
	for ctx.Err() == nil {
		if c.idle != nil && c.idle() {
			select {
			case <-ctx.Done():
				return nil
			case <-c.kicks:
			}
		}
		began := c.Clock.Now()
		err := c.attempt(ctx)
		c.Logger.Debug("probe", "err", err)
		if ctx.Err() == nil { // else the probe was cut short
			next := c.observe(err)
			// hubs lose a server all at once: one of them should soon see that it is back, not all late.
			if unready := new(UnreadyError); err != nil && !errors.As(err, &unready) {
				next = next/2 + rand.N(next/2+1)
			}
			c.rest(ctx, began, next)
		}
	}
	return nil
}

// moreTime is how many times its time-out a probe may take while signs of life come: its answer may be behind them, on
// a link that is full.
const moreTime = 6

// attempt probes once.
func (c *Checker) attempt(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for n := 0; n == 0 || n < moreTime && c.Clock.Since(c.lastHeard()) < c.Policy.Limit/2; n++ {
			process.Pause(ctx, clock.RealClock{}, c.Policy.Limit)
			if ctx.Err() != nil {
				return
			}
		}
		cancel(context.DeadlineExceeded)
	}()
	err := c.Probe(ctx)
	if because := context.Cause(ctx); err != nil && because != nil {
		return because
	}
	return err
}

// rest waits until a probe is due: some time after now, later if other signs of life spare it, and soon after a kick.
// began is when the probe before began.
func (c *Checker) rest(ctx context.Context, began time.Time, next time.Duration) {
	now := c.Clock.Now()
	for ctx.Err() == nil {
		wait := c.due(now, next)
		if wait <= 0 {
			return
		}
		timer := c.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-c.news:
		case <-c.kicks:
			process.Pause(ctx, c.Clock, c.pause()-c.Clock.Since(began)) // many requests that fail are one reason to probe
			timer.Stop()
			return
		}
		timer.Stop()
	}
}

// pause is the least time from the begin of a probe to that of one that is asked for.
func (c *Checker) pause() time.Duration {
	if c.Several != nil && c.Several() {
		return c.Policy.Timeout / 20
	}
	return c.Policy.Timeout / 2
}

// due is the time from now until the next probe, which is due some time after the last, or later if the server was
// heard.
func (c *Checker) due(last time.Time, after time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := last.Add(after)
	if !c.state.Known && !c.wanted.IsZero() && c.wanted.Before(at) {
		at = c.wanted
	}
	if c.state.OK && c.state.Fails == 0 && !c.doubted && (c.unready == "" || c.lone) {
		heard := c.born.Add(time.Duration(c.heardAt.Load()) + lasting*c.Policy.Interval)
		longest := spared * c.Policy.Interval
		if c.fed.Load() {
			longest = sparedFed * c.Policy.Interval
		}
		if latest := last.Add(longest); heard.After(latest) {
			heard = latest
		}
		if heard.After(at) {
			at = heard
		}
	}
	return at.Sub(c.Clock.Now())
}

// want says within what time somebody has to know of a server of which nothing is known yet; zero: nobody has to. Of
// many who want it at once, not all want it at the same time: one of them may be enough.
func (c *Checker) want(within time.Duration) {
	c.mu.Lock()
	change := within != c.within
	if change {
		c.within, c.wanted = within, time.Time{}
		if within > 0 {
			c.wanted = c.Clock.Now().Add(rand.N(within))
		}
	}
	c.mu.Unlock()
	if change {
		c.nudge()
	}
}

func (c *Checker) nudge() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// feeds says whether relays are fed by the server.
func (c *Checker) feeds(yes bool) {
	if c.fed.Swap(yes) != yes {
		c.nudge()
	}
}

// heard notes a sign of life: something came over a connection that the server proved to be its own. It is cheap.
func (c *Checker) heard() { c.heardAt.Store(int64(c.Clock.Since(c.born))) }

// lastHeard is when the last sign of life came; before the first, when the checker was made.
func (c *Checker) lastHeard() time.Time { return c.born.Add(time.Duration(c.heardAt.Load())) }

// answered takes the answer to a request that was no probe. It decides about a server of which nothing is known. Later
// it is a sign of life, and no more: a server that failed a probe has to pass one. A server error is none, but a reason
// to ask the server itself.
func (c *Checker) answered(code int) {
	c.mu.Lock()
	known := c.state.Known
	if code >= http.StatusInternalServerError {
		c.doubted = true
	}
	c.mu.Unlock()
	switch {
	case code >= http.StatusInternalServerError:
	case known:
		c.heard()
		return
	default:
		c.heard()
		c.observe(nil)
	}
	c.nudge()
}

func (c *Checker) observe(err error) (next time.Duration) {
	unready := ""
	if u := new(UnreadyError); errors.As(err, &u) {
		unready, err = u.Because.Error(), nil
	}
	c.mu.Lock()
	before, said := c.state, c.unready
	c.state.Observe(c.Policy, err == nil)
	c.doubted = false
	turned := c.state.Known != before.Known || c.state.OK != before.OK
	c.lastError, c.lastCause = "", ""
	if err != nil {
		c.lastError, c.lastCause = err.Error(), connectivity.Word(err)
	} else {
		c.unready = unready // a probe that failed tells nothing of it
	}
	if turned {
		c.since = c.Clock.Now()
	}
	ok, next := c.state.OK, c.state.Next(c.Policy)
	c.mu.Unlock()
	name := c.Name
	if c.Named != nil {
		name = c.Named()
	}
	switch {
	case turned && !ok:
		c.Logger.Warn("not healthy", "server", name, "err", err)
	case turned:
		c.Logger.Info("healthy", "server", name)
	}
	readiness := err == nil && (unready == "") != (said == "")
	switch {
	case readiness && unready != "":
		c.Logger.Warn("the server says that it is not ready, and serves: it stays in use unless another one is ready",
			"server", name, "err", unready)
	case readiness:
		c.Logger.Info("the server is ready", "server", name)
	}
	if turned || readiness {
		c.Changed()
	}
	return next
}

// Kick makes the next probe due now, or soon if there was one just now. It never blocks.
func (c *Checker) Kick() {
	select {
	case c.kicks <- struct{}{}:
	default:
	}
}

// Judgement is what is known of a server.
type Judgement struct {
	Known   bool      `json:"-"`
	Healthy bool      `json:"healthy"`
	Since   time.Time `json:"since,omitzero"`
	Error   string    `json:"error,omitempty"`
	Cause   string    `json:"cause,omitempty"`   // of the error, in one word: one of package digest
	Unready string    `json:"unready,omitempty"` // what it said of itself last although it serves
}

// Judgement is what is known now.
func (c *Checker) Judgement() Judgement {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Judgement{Known: c.state.Known, Healthy: c.state.OK, Since: c.since, Error: c.lastError, Cause: c.lastCause,
		Unready: c.unready}
}

// Ready reports whether the server serves and does not say that it is not ready.
func (j Judgement) Ready() bool { return j.Healthy && j.Unready == "" }

// OK reports whether the server is healthy, as far as is known.
func (c *Checker) OK() bool { return c.Judgement().Healthy }
