package togate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

const (
	answers = 5 * time.Second // a gate has to say whether it is ready
	looks   = time.Minute     // how often it is looked whether the hub has another certificate
	// how rarely a quiet gate has to say that it lives. Nothing in a pool is fresh that is 30 s old, and between the gate
	// and the last node there are more relays.
	calm = 10 * time.Second
	// how often it is looked whether the cloud gave a sign of life while the gate gives none.
	signs = 500 * time.Millisecond
)

// Config is what a Gate is made of.
type Config struct {
	Cloud     *uplink.Cloud
	Directory *directory.Directory // tells where the gate is
	Sources   *relayed.Sources     // which read there
	Cert      uplink.Certificate   // of the hub's own user
	OnBytes   func(int)            // told the bytes of bodies
	Net       uplink.Dials
	Spread    time.Duration // within which it is left after it failed; 0: at once
	Clock     clock.Clock
	Logger    *slog.Logger
}

// Gate is the way to weir-gate. It is safe for concurrent use.
type Gate struct {
	Config
	poke chan struct{}

	mu      sync.Mutex
	is      directory.Gate // that up leads to
	up      *hop.Upstream  // nil: there is none
	way     *uplink.Transport
	shown   *tls.Certificate // over way
	decides member.Gate
	leaves  time.Time // when it is left; zero: it was, or is not
}

var _ relayed.Gate = (*Gate)(nil)

// New makes the way to the gate, and has the sources take it.
func New(c Config) *Gate {
	g := &Gate{Config: c, poke: make(chan struct{}, 1)}
	g.place()
	c.Sources.Gate = g
	c.Cloud.Follow(func() {
		if c.Cloud.Healthy() {
			g.mu.Lock()
			g.decides.Returned(c.Clock.Now())
			g.mu.Unlock()
			g.look()
		}
	})
	return g
}

// Upstream implements relayed.Gate.
func (g *Gate) Upstream(resource string) *hop.Upstream {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.up == nil || !g.decides.Takes(g.Clock.Now(), resource) {
		return nil
	}
	return g.up
}

// Failed implements relayed.Gate.
func (g *Gate) Failed(up *hop.Upstream, resource string, err error) {
	g.mu.Lock()
	turns := g.up != nil && up == g.up && g.failed(resource, err)
	turns = turns && g.leaves.IsZero()
	if g.up != nil && up.Consistent && hop.Gone(err) {
		turns = g.decides.Forgotten(g.Clock.Now(), resource)
	}
	g.mu.Unlock()
	if turns {
		g.Sources.Turn()
	}
	g.look()
}

// failed takes an error of the gate, and reports whether anything is read elsewhere now; g.mu is held.
func (g *Gate) failed(resource string, err error) bool {
	now := g.Clock.Now()
	var earlier *member.EarlierHistoryError
	switch code := hop.Answered(err); {
	case code == http.StatusTooManyRequests: // kube-apiserver would say so, too
		return false
	case code == http.StatusGone:
		g.decides.Forgot(now, resource)
	case code == http.StatusForbidden || code == http.StatusNotFound:
		g.decides.Lacks(now, resource)
	case code == 0 && !errors.As(err, &earlier): // the link may be at fault
		if !g.decides.Rests() && !g.decides.Doubtful() {
			g.decides.Doubt(now)
			g.Cloud.Ask()
			g.look()
		}
		return false
	default:
		if !g.decides.Rests() {
			g.tell(resource, err)
			g.leave()
		}
		g.decides.Failed(now, hop.RetryAfter(err))
	}
	return true
}

// leave has all that is read there be read elsewhere soon: pools lose a gate all at once. g.mu is held.
func (g *Gate) leave() {
	if g.Spread > 0 {
		g.leaves = g.Clock.Now().Add(rand.N(g.Spread))
	}
}

// left reports whether it is time to leave, and in what time it is otherwise; 0: it is not to be left. g.mu is held.
func (g *Gate) left() (now bool, in time.Duration) {
	if g.leaves.IsZero() {
		return false, 0
	}
	if in = g.leaves.Sub(g.Clock.Now()); in > 0 {
		return false, in
	}
	g.leaves = time.Time{}
	return true, 0
}

func (g *Gate) tell(resource string, err error) {
	g.Logger.Warn("the gate does not serve: what the pool shares is read at kube-apiserver itself until it does",
		"gate", g.is.Server, "resource", resource, "err", err)
}

// look has Run look again. It never blocks.
func (g *Gate) look() {
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// Run follows what the pool is told of the gate, and asks one that rests, or is in doubt, whether it is ready. It
// returns when ctx ends.
func (g *Gate) Run(ctx context.Context) error {
	defer g.end()
	for ctx.Err() == nil {
		changed := g.Directory.Changed()
		up, wait, turns := g.due()
		if turns {
			g.Sources.Turn()
		}
		if up != nil && wait <= 0 {
			g.ask(ctx, up)
			continue
		}
		timer := g.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-changed:
		case <-g.poke:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// due is the gate, if it is to be asked, in what time it is, or is to be looked at again, and whether anything is read
// elsewhere now. It shows another certificate once the hub has one.
func (g *Gate) due() (up *hop.Upstream, wait time.Duration, turns bool) {
	other := g.place()
	g.mu.Lock()
	defer g.mu.Unlock()
	again, next := g.decides.Again(g.Clock.Now())
	up, wait = g.asks()
	left, in := g.left()
	for _, next := range []time.Duration{next, in} {
		if next > 0 {
			wait = min(wait, next)
		}
	}
	return up, wait, other || again || left
}

// asks is the gate, if it is to be asked, and in what time; g.mu is held.
func (g *Gate) asks() (up *hop.Upstream, wait time.Duration) {
	if now := g.Cert.Get(); g.way != nil && g.shown != now {
		g.shown = now
		g.way.Renew()
	} else if g.way != nil {
		g.way.Sweep()
	}
	in, is := g.decides.Asks(g.Clock.Now(), g.Cloud.LastHeard())
	switch {
	case g.up == nil:
	case is && in > 0:
		return nil, in + rand.N(in/4+1) // pools lose a gate all at once
	case is && g.Cloud.Healthy():
		return g.up, 0
	case g.decides.Doubtful():
		return nil, signs
	}
	return nil, looks
}

// ask asks the gate whether it is ready, over a connection of its own: the one before may be dead.
func (g *Gate) ask(ctx context.Context, up *hop.Upstream) {
	asking, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	g.mu.Lock()
	rested := g.decides.Rests()
	g.way.Renew()
	g.mu.Unlock()
	err := ready(asking, up)
	if ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	g.decides.Asked(g.Clock.Now(), err == nil)
	rests, server := g.decides.Rests(), g.is.Server
	if rests && !rested {
		g.tell("", err)
		g.leave()
	}
	turns := g.leaves.IsZero()
	g.mu.Unlock()
	switch {
	case rested && !rests:
		g.Logger.Info("the gate is ready: what the pool shares is read there", "gate", server)
		g.Sources.Turn()
	case rests && !rested && turns:
		g.Sources.Turn()
	case !rests:
		g.Sources.Retry()
	}
}

func ready(ctx context.Context, up *hop.Upstream) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, up.URL.JoinPath("readyz").String(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := up.Client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// place follows which gate the pool is told of, and reports whether it is another one.
func (g *Gate) place() (other bool) {
	told := g.Directory.Now().Gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.is == told {
		return false
	}
	g.close()
	g.leaves = time.Time{}
	if g.is, g.decides = told, (member.Gate{}); told == (directory.Gate{}) {
		return true
	}
	u, err := url.Parse(told.Server) // the directory has checked it
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM([]byte(told.Authorities)) {
		return true
	}
	g.way, g.shown = g.Cloud.Beside(g.Net, roots, g.Cert, true), g.Cert.Get()
	g.up = &hop.Upstream{
		Name: source.Gate, URL: u, Client: uplink.Client(g.way), OnBytes: g.OnBytes, Progress: true, Delta: true, Calm: calm,
		Silent: g.Cloud.IsLate, Arrived: func() int64 { return g.Cloud.Bytes(uplink.ClassPool).Down },
	}
	g.Logger.Info("the cloud has a gate", "gate", told.Server)
	return true
}

// close gives up the way to a gate; g.mu is held.
func (g *Gate) close() {
	if g.way != nil {
		g.way.Close()
	}
	g.up, g.way, g.shown = nil, nil, nil
}

func (g *Gate) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.close()
}
