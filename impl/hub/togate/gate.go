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
	answers = 10 * time.Second // a gate has to say whether it is ready
	looks   = time.Minute      // how often it is looked whether the hub has another certificate
)

// Config is what a Gate is made of.
type Config struct {
	Cloud     *uplink.Cloud
	Directory *directory.Directory // tells where the gate is
	Sources   *relayed.Sources     // which read there
	Cert      uplink.Certificate   // of the hub's own user
	OnBytes   func(int)            // told the bytes of bodies
	Net       uplink.Dials
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
	g.mu.Unlock()
	if turns {
		g.Sources.Turn()
		g.look()
	}
}

// failed takes an error of the gate, and reports whether anything is read elsewhere now; g.mu is held.
func (g *Gate) failed(resource string, err error) bool {
	now := g.Clock.Now()
	switch hop.Answered(err) {
	case http.StatusGone, http.StatusTooManyRequests: // kube-apiserver would say so, too
		return false
	case http.StatusForbidden, http.StatusNotFound:
		g.decides.Lacks(now, resource)
	default:
		if _, rests := g.decides.Due(); !rests {
			g.Logger.Warn("the gate does not serve: what the pool shares is read at kube-apiserver itself until it does",
				"gate", g.is.Server, "resource", resource, "err", err)
		}
		g.decides.Failed(now, hop.RetryAfter(err))
	}
	return true
}

// look has Run look again. It never blocks.
func (g *Gate) look() {
	select {
	case g.poke <- struct{}{}:
	default:
	}
}

// Run follows what the pool is told of the gate, and asks one that rests whether it is ready, until ctx ends.
func (g *Gate) Run(ctx context.Context) error {
	defer g.leave()
	for ctx.Err() == nil {
		changed := g.Directory.Changed()
		if g.place() {
			g.Sources.Turn()
		}
		up, wait := g.due()
		if up != nil && wait <= 0 && g.Cloud.Healthy() {
			g.ask(ctx, up)
			continue
		}
		if up == nil || wait <= 0 || wait > looks { // who makes it rest says so, and so does the cloud when it is back
			wait = looks
		}
		timer := g.Clock.NewTimer(wait + rand.N(wait/4+1)) // pools lose a gate all at once
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

// due is the gate, if it rests, and how long still. It shows another certificate once the hub has one.
func (g *Gate) due() (up *hop.Upstream, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.Cert.Get(); g.way != nil && g.shown != now {
		g.shown = now
		g.way.Renew()
	} else if g.way != nil {
		g.way.Sweep()
	}
	if at, rests := g.decides.Due(); rests {
		return g.up, at.Sub(g.Clock.Now())
	}
	return nil, 0
}

// ask asks the gate whether it is ready.
func (g *Gate) ask(ctx context.Context, up *hop.Upstream) {
	asking, cancel := context.WithTimeout(ctx, answers)
	defer cancel()
	err := ready(asking, up)
	if ctx.Err() != nil {
		return
	}
	g.mu.Lock()
	g.decides.Asked(g.Clock.Now(), err == nil)
	server := g.is.Server
	g.mu.Unlock()
	if err == nil {
		g.Logger.Info("the gate is ready: what the pool shares is read there", "gate", server)
		g.Sources.Turn()
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
		Name: source.Gate, URL: u, Client: uplink.Client(g.way), OnBytes: g.OnBytes, Progress: true, Delta: true,
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

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.close()
}
