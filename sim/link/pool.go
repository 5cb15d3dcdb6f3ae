package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
	"k8s.io/utils/clock"
)

// DefaultBurst is the burst of a link that names none: what an idle wire lets pass at once. It is about what
// routers are configured with, and enough to make good for timers that fire some milliseconds late.
const DefaultBurst = 16 << 10

// Config of an uplink.
type Config struct {
	Name string // of the pool, for errors and logs

	// Up and Down are the rates in bits per second from the nodes to the cloud and back, shared by all
	// connections of the pool. 0 is unlimited.
	Up, Down int64
	// Burst in bytes per direction; DefaultBurst when 0.
	Burst int64
	// RTT is the round-trip time; each direction delays by half of it.
	RTT time.Duration
	// Phase is the name of the first phase.
	Phase string

	Clock  clock.Clock  // default: real time
	Logger *slog.Logger // default: slog.Default()
}

// Validate tells what is wrong with a Config.
func (c Config) Validate() error {
	switch {
	case c.Name == "":
		return errors.New("link: the pool has no name")
	case c.Up < 0 || c.Down < 0:
		return fmt.Errorf("link %s: rates %d up and %d down: want bits per second, or 0 for unlimited", c.Name, c.Up, c.Down)
	case c.Burst < 0:
		return fmt.Errorf("link %s: burst %d: want bytes, or 0 for %d", c.Name, c.Burst, DefaultBurst)
	case c.RTT < 0:
		return fmt.Errorf("link %s: round trip %s: want 0 or more", c.Name, c.RTT)
	}
	return nil
}

// Pool is one uplink with all its proxies. Its methods may be called by many goroutines and take effect at once,
// also for bytes on their way.
type Pool struct {
	name   string
	clock  clock.Clock
	log    *slog.Logger
	server *toxiproxy.ApiServer // never listens; toxiproxy's parts want one
	wires  [2]*meter            // by Direction.index
	ledger *ledger

	ctx    context.Context // of dials; ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // accept loops and connections

	mu       sync.Mutex
	closed   bool
	proxies  []*Proxy
	rtt      time.Duration
	cuts     map[Cut]struct{} // one direction each
	healed   [2]time.Time     // when a cut was last healed, by Direction.index
	toxics   []*toxic
	numbered int           // of toxics, so far
	changed  chan struct{} // closed and replaced at each change of rtt, rates, cuts and toxics
}

// NewPool returns an uplink without proxies.
func NewPool(c Config) (*Pool, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Burst == 0 {
		c.Burst = DefaultBurst
	}
	toxics.Register(toxicType, new(uplink))
	toxics.Register(hostType, new(host))
	now := c.Clock.Now()
	p := &Pool{
		name:    c.Name,
		clock:   c.Clock,
		log:     c.Logger.With("link", c.Name),
		server:  toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()),
		wires:   [2]*meter{newMeter(now, c.Up, c.Burst), newMeter(now, c.Down, c.Burst)},
		ledger:  newLedger(now, c.Phase),
		rtt:     c.RTT,
		cuts:    map[Cut]struct{}{},
		changed: make(chan struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// Name is the name given in the Config.
func (p *Pool) Name() string { return p.name }

// SetPhase names the phase that bytes are counted under from now on.
func (p *Pool) SetPhase(name string) { p.ledger.setPhase(name) }

// SetRate changes the rate of the given directions, in bits per second; 0 is unlimited.
func (p *Pool) SetRate(dir Direction, bits int64) {
	now := p.clock.Now()
	for _, d := range []Direction{Up, Down} {
		if dir&d != 0 {
			p.wires[d.index()].setRate(now, max(bits, 0))
		}
	}
	p.change(func() {})
}

// Rate is the rate of one direction now, in bits per second; 0 is unlimited.
func (p *Pool) Rate(dir Direction) int64 { return p.wires[dir.index()].bits() }

// RTT is the round-trip time now.
func (p *Pool) RTT() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rtt
}

// SetRTT changes the round-trip time. What travels already arrives when it was going to, and nothing overtakes it.
func (p *Pool) SetRTT(rtt time.Duration) { p.change(func() { p.rtt = max(rtt, 0) }) }

// Counters returns all bytes counted so far.
func (p *Pool) Counters() []Counter { return p.ledger.list() }

// Connections returns every connection that was opened across the link so far, in the order of opening.
func (p *Pool) Connections() []Connection { return p.ledger.connections() }

// Series returns the bytes counted so far over time, in buckets of the given length (rounded to 100 ms), in order.
// Empty buckets are left out.
func (p *Pool) Series(bucket time.Duration) []Sample { return p.ledger.samples(bucket) }

// Close closes all proxies and connections, without a word across the link, and waits for their goroutines.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	proxies := p.proxies
	p.proxies = nil
	p.mu.Unlock()
	p.cancel()
	for _, x := range proxies {
		_ = x.listener.Close()
	}
	p.wg.Wait()
}

// change applies f and wakes everybody who waits for the link.
func (p *Pool) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.changed)
	p.changed = make(chan struct{})
}

// conditions of one node and direction now, and a channel that is closed when they change.
func (p *Pool) conditions(node string, dir Direction) (conditions, <-chan struct{}) {
	packet := p.wires[dir.index()].packet()
	p.mu.Lock()
	defer p.mu.Unlock()
	return conditions{
		now:    p.clock.Now(),
		open:   !p.isCut(node, dir),
		acked:  !p.isCut(node, dir.opposite()),
		since:  p.healed[dir.index()],
		delay:  p.rtt / 2,
		packet: packet,
	}, p.changed
}
