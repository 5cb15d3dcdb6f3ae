package virtual

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/sim/invariant"
)

// What the hub's HTTP/2 connections wait between pings.
const (
	cloudPing = 15 * time.Second
	poolPing  = 3 * time.Second
	pulsePing = time.Second // of the coordinator's
)

// Config is what a pool is made of.
type Config struct {
	// Seed of all chance.
	Seed uint64
	// Hubs is how many there are, named a, b, c and so on. Each has Clients clients.
	Hubs, Clients int
	// Leaders is how many of them the pool has named its leader hubs, the first ones. 0: there is a coordinator.
	Leaders int
	// Grace and Spread as in role.Config.
	Grace, Spread time.Duration
	// Churn is the time between two changes of the resource, at most, until Calm is called. 0: none but by command.
	Churn time.Duration
	// Trace gets one line for each thing worth telling, and Detail one for each event that a client takes. May be nil.
	Trace, Detail func(line string)
	// Lease gets each operation on the election Lease when it begins; it is filled in until the run ends. May be nil.
	Lease func(*LeaseOp)
	// Inputs gets all that the machines of package member are given: a member.Observation, and the role.Input that it
	// makes, a member.Feed, End or Pulse. May be nil.
	Inputs func(any)
}

// Pool is a cloud, a coordinator, hubs and clients in virtual time.
type Pool struct {
	*Loop
	cfg     Config
	role    role.Config
	cloud   *Cloud
	coord   *Coordinator
	hubs    []*Hub
	clients []*Client
	judge   *judge
}

// given tells what a machine was given.
func (p *Pool) given(input any) {
	if p.cfg.Inputs != nil {
		p.cfg.Inputs(input)
	}
}

// New returns a pool of which all parts run, at time 0.
func New(c Config) *Pool {
	p := &Pool{
		Loop: newLoop(c.Seed), cfg: c,
		role: role.Config{Grace: c.Grace, Spread: c.Spread, Wait: 9 * time.Second},
	}
	p.judge = newJudge(p)
	p.cloud = newCloud(p.Loop)
	p.cloud.start()
	for i := range 6 {
		p.cloud.write(key(i))
	}
	p.cloud.oldest = p.cloud.version
	p.coord = &Coordinator{process: process{loop: p.Loop, name: "coordinator"}, pool: p}
	if c.Leaders == 0 {
		p.coord.boot(false)
	}
	for i := range c.Hubs {
		h := &Hub{process: process{loop: p.Loop, name: string(rune('a' + i))}, pool: p}
		h.toCloud = &link{loop: p.Loop, client: &h.process, server: &p.cloud.process, pings: cloudPing}
		h.toCoordinator = &link{loop: p.Loop, client: &h.process, server: &p.coord.process, pings: poolPing}
		h.fromCoordinator = &link{loop: p.Loop, client: &p.coord.process, server: &h.process, pings: pulsePing}
		h.designated = role.Elected
		if c.Leaders > 0 {
			if h.designated = role.Others; i < c.Leaders {
				h.designated = role.Mine
			}
		}
		for j := range c.Clients {
			cl := &Client{
				loop: p.Loop, pool: p, name: fmt.Sprintf("%s%d", h.name, j+1), hub: h,
				judged: invariant.Rules{Batches: true, Torn: true}.Stream(p.cloud.view),
			}
			h.clients, p.clients = append(h.clients, cl), append(p.clients, cl)
		}
		p.hubs = append(p.hubs, h)
	}
	for _, h := range p.hubs {
		h.peers = map[*Hub]*link{}
		for _, o := range p.hubs {
			if o != h && o.designated == role.Mine {
				h.peers[o] = &link{loop: p.Loop, client: &h.process, server: &o.process, pings: poolPing}
			}
		}
		h.boot(false)
	}
	if c.Churn > 0 {
		p.churn()
	}
	return p
}

func key(i int) string { return fmt.Sprintf("ns/%c", 'p'+i) }

// churn changes a random object, and again later.
func (p *Pool) churn() {
	p.After(p.upTo(p.cfg.Churn), func() {
		if p.cfg.Churn == 0 {
			return
		}
		if k := key(p.rng.IntN(8)); p.one(4) {
			p.change(p.cloud.remove(k))
		} else {
			p.change(p.cloud.write(k))
		}
		p.churn()
	})
}

// Calm ends the churn.
func (p *Pool) Calm() { p.cfg.Churn = 0 }

// Run lets time pass, until a promise is broken.
func (p *Pool) Run(d time.Duration) { p.RunWhile(p.Now()+d, p.judge.fine) }

// Close ends what watches have open, those of killed processes too: each is a goroutine.
func (p *Pool) Close() {
	for _, s := range p.servers {
		for _, t := range slices.Clone(s.taps) {
			t.close()
		}
	}
}

// Err is the first broken promise, nil if all were kept.
func (p *Pool) Err() error { return p.judge.err }

func (p *Pool) trace(who, format string, args ...any) {
	if p.cfg.Trace != nil {
		p.cfg.Trace(p.line(who, format, args...))
	}
}

func (p *Pool) detail(who, format string, args ...any) {
	if p.cfg.Detail != nil {
		p.cfg.Detail(p.line(who, format, args...))
	}
}

func (p *Pool) line(who, format string, args ...any) string {
	return fmt.Sprintf("%10s %-11s %s", p.Now().Truncate(time.Millisecond), who, fmt.Sprintf(format, args...))
}

// kill ends a hub at once: the other ends of its connections learn of it if the links are open.
func (p *Pool) kill(h *Hub) {
	h.process.kill()
	for _, t := range h.server.taps {
		t.end = nil
	}
	for _, t := range append([]*tap(nil), h.server.taps...) {
		t.close()
	}
	h.toCloud.reset(true)
	h.toCoordinator.reset(true)
	h.fromCoordinator.reset(true)
	for _, l := range p.between(h) {
		l.reset(true)
	}
	for _, c := range p.clients {
		if c.hub == h {
			c.cut()
			c.retry(clientRetry)
		}
	}
}

// between are the links between a hub and leader hubs, and, of a leader hub, those of the others to it.
func (p *Pool) between(h *Hub) (links []*link) {
	for _, o := range p.hubs {
		if l := h.peers[o]; l != nil {
			links = append(links, l)
		}
		if l := o.peers[h]; l != nil {
			links = append(links, l)
		}
	}
	return links
}

// killCoordinator does likewise.
func (p *Pool) killCoordinator() {
	p.coord.kill()
	for _, t := range append([]*tap(nil), p.coord.server.taps...) {
		t.close()
	}
	for _, h := range p.hubs {
		h.toCoordinator.reset(true)
		h.fromCoordinator.reset(true)
	}
}

// breakCloud ends all connections of the cloud.
func (p *Pool) breakCloud() {
	for _, h := range p.hubs {
		h.toCloud.reset(true)
	}
	for _, c := range p.clients {
		if c.hub == nil {
			c.cut()
			c.retry(clientRetry)
		}
	}
}

// change writes to the cloud.
func (p *Pool) change(ev *wire.Event) {
	if ev != nil {
		p.detail("cloud", "%s %s@%d", ev.Type, ev.Object.Key, ev.Version)
		p.cloud.publish(ev)
	}
}
