package scope

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/relay"
)

const (
	services = "services.v1."
	widgets  = "widgets.v1.example.com"
	linger   = 10 * time.Minute
)

// pool is what a Scope relays, in virtual time.
type pool struct {
	t   *testing.T
	set Set
	*Scope

	mu    sync.Mutex
	told  []string
	open  []string
	holds bool
	slow  chan struct{} // closed: what is kept of a relay is forgotten at once
	known bool          // what a widget is
}

func (p *pool) tell(what, resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, what+" "+strings.TrimSuffix(resource, "."))
}

func (p *pool) All() []*relay.Relay { return p.set.All() }

func (p *pool) Join(res relay.Resource) (*relay.Relay, error) {
	r, err := relay.New(relay.Config{
		Resource: res, Late: true, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	p.set.Add(r)
	p.tell("join", res.String())
	return r, nil
}

func (p *pool) Feed(ctx context.Context, _ *relay.Relay) error {
	<-ctx.Done()
	return nil
}

func (p *pool) Leave(r *relay.Relay) {
	p.set.Remove(r)
	p.tell("leave", r.Resource().String())
}

func (p *pool) Left(r *relay.Relay) {
	<-p.slow
	p.tell("left", r.Resource().String())
}

func (p *pool) find(_ context.Context, s directory.Shared) (directory.Shared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.known {
		return s, errors.New("the cloud is away")
	}
	s.Kind = "Widget"
	return s, nil
}

// begin runs a Scope of Services and widgets.
func begin(t *testing.T, linger time.Duration) *pool {
	p := &pool{t: t, slow: make(chan struct{})}
	close(p.slow)
	p.Scope = New(Config{
		Relays: p, Linger: linger, Find: p.find, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
		Fixed: []directory.Shared{
			{Version: "v1", Resource: "services"}, {Group: "example.com", Version: "v1", Resource: "widgets"},
		},
		Open: func() []string {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.open
		},
		Holds: func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.holds
		},
	})
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { end(); <-ended })
	synctest.Wait()
	return p
}

// with changes something under which the Scope runs.
func (p *pool) with(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// step lets time pass.
func (p *pool) step(by time.Duration) {
	time.Sleep(by)
	synctest.Wait()
}

// has checks that this is what was told, and nothing else.
func (p *pool) has(told ...string) {
	p.t.Helper()
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.told, told) {
		p.t.Fatalf("told was %q, want %q", p.told, told)
	}
}

// TestRead: a resource is relayed while it is read, and Linger longer.
func TestRead(t *testing.T) {
	synctest.Test(t, testRead)
}

func testRead(t *testing.T) {
	p := begin(t, linger)
	if p.May("secrets.v1.") || !p.May(services) {
		t.Error("may")
	}
	if idle := p.Idle(); !slices.Equal(idle, []string{services, widgets}) {
		t.Errorf("idle are %q", idle)
	}
	if r, done := p.Read("secrets.v1."); r != nil {
		t.Error("what is not named is relayed")
	} else {
		done()
	}
	p.has()
	r, done := p.Read(services)
	again, first := p.Read(services)
	if r == nil || r != again {
		t.Fatalf("%p and %p", r, again)
	}
	p.has("join services.v1")
	if idle := p.Idle(); !slices.Equal(idle, []string{widgets}) {
		t.Errorf("idle are %q", idle)
	}
	first()
	p.step(2 * linger) // one still reads
	p.has("join services.v1")
	done()
	p.step(linger - time.Second)
	p.has("join services.v1")
	_, short := p.Read(services) // ten minutes begin again
	short()
	p.step(linger - time.Second)
	p.has("join services.v1")
	p.with(func() { p.holds = true }) // the cloud is away: this may be all that there is
	p.step(3 * linger)
	p.has("join services.v1")
	p.with(func() { p.holds = false })
	p.step(time.Minute + 2*time.Second)
	p.has("join services.v1", "leave services.v1", "left services.v1")
	r, done = p.Read(services)
	defer done()
	if r == nil || r == again {
		t.Errorf("%p comes back as %p", again, r)
	}
}

// TestReadAgainAtOnce: who reads what was just given up gets no second relay while something of the first is there.
func TestReadAgainAtOnce(t *testing.T) {
	synctest.Test(t, testReadAgainAtOnce)
}

func testReadAgainAtOnce(t *testing.T) {
	p := begin(t, linger)
	p.slow = make(chan struct{})
	_, done := p.Read(services)
	done()
	p.step(linger + time.Minute)
	p.has("join services.v1", "leave services.v1")
	r, done := p.Read(services)
	defer done()
	if r != nil {
		t.Fatal("there are two relays of one resource")
	}
	close(p.slow)
	p.has("join services.v1", "leave services.v1", "left services.v1", "join services.v1")
}

// TestOpen: what is read at the cloud when it becomes shared is relayed too.
func TestOpen(t *testing.T) {
	synctest.Test(t, testOpen)
}

func testOpen(t *testing.T) {
	p := begin(t, linger)
	p.with(func() { p.open = []string{services, "pods.v1."} })
	p.step(time.Minute)
	p.has("join services.v1")
	p.step(3 * linger)
	p.has("join services.v1")
	p.with(func() { p.open = nil })
	p.step(time.Minute + 2*time.Second)
	p.has("join services.v1", "leave services.v1", "left services.v1")
}

// TestUnknown: of what nobody knows the cloud is asked only when it is read, and again until it tells.
func TestUnknown(t *testing.T) {
	synctest.Test(t, testUnknown)
}

func testUnknown(t *testing.T) {
	p := begin(t, linger)
	p.step(linger)
	if u := p.Unknown(); len(u) > 0 {
		t.Errorf("%q is looked for, and nobody reads it", u)
	}
	r, done := p.Read(widgets)
	defer done()
	if r != nil {
		t.Fatal("it is relayed before it is known what it is")
	}
	p.has()
	if u := p.Unknown(); len(u) != 1 {
		t.Errorf("unknown are %q", u)
	}
	p.with(func() { p.known = true })
	p.step(findFirst)
	p.has("join " + widgets)
	if u := p.Unknown(); len(u) > 0 {
		t.Errorf("unknown are %q", u)
	}
}

// TestAlways: without Linger what is named is relayed, read or not.
func TestAlways(t *testing.T) {
	synctest.Test(t, testAlways)
}

func testAlways(t *testing.T) {
	p := begin(t, 0)
	p.has("join services.v1")
	r, done := p.Read(services)
	if done(); r == nil || len(p.Idle()) > 0 {
		t.Errorf("%v, idle are %q", r, p.Idle())
	}
	p.step(24 * time.Hour)
	p.has("join services.v1")
}
