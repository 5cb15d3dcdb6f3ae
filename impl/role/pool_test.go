package role

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/testkit"
)

// pool is a pool of machines around one Lease store, in virtual time on one goroutine.
type pool struct {
	testkit.Loop

	t       *testing.T
	hubs    []*hub
	latency func() time.Duration // one way
	trace   func(h *hub, format string, args ...any)
	check   func(h *hub)
	config  Config

	// The coordinator.
	incarnation int
	version     uint64
	leases      map[Kind]Record // by kind of read
	wall        time.Time
	freed       map[string]uint64 // newest version whose Lease the coordinator took away, by incarnation
	sayReady    bool
	watching    bool // hubs watch the Leases
}

type hub struct {
	name               string
	m                  *Machine
	life               int // how often it was started
	began              time.Duration
	running, frozen    bool
	coordinator, cloud bool // healthy, as the hub judges
	lost               bool // answers of the coordinator do not come back
	fresh, stop, have  bool
	aged               bool // what it has
	restored           bool // it has that from its disk alone
	silent             bool // its streams from the cloud
	out                Output
	term               contract.Term // being fed
	held               []Result      // arrived while frozen
	wakeSeq            int
	skew               time.Duration // of its wall clock
	barred             time.Duration // until when the coordinator lets it not hold the Lease
}

func newPool(t *testing.T, c Config, names ...string) *pool {
	t.Helper()
	p := &pool{
		t: t, incarnation: 1, version: 100, leases: map[Kind]Record{}, freed: map[string]uint64{},
		wall:    time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		latency: func() time.Duration { return 5 * time.Millisecond },
		trace:   func(*hub, string, ...any) {}, check: func(*hub) {},
	}
	p.config = c
	p.config.Wait = 9 * time.Second
	for i, name := range names {
		p.config.Seed = uint64(i)
		h := &hub{name: name}
		p.make(h)
		p.hubs = append(p.hubs, h)
	}
	return p
}

func (h *hub) identity() string { return fmt.Sprint(h.name, "_", h.life) }

// make makes the machine of another life.
func (p *pool) make(h *hub) {
	c := p.config
	if h.life > 0 {
		c.Former = h.identity()
	}
	h.life++
	c.Identity = h.identity()
	var err error
	if h.m, err = New(c); err != nil {
		p.t.Fatal(err)
	}
	h.out, h.term, h.began = Output{}, contract.Term{}, p.Now()
}

// step steps a hub with what it observes now.
func (p *pool) step(h *hub, r *Result) { p.stepWith(h, Input{Result: r}) }

func (p *pool) stepWith(h *hub, in Input) {
	if !h.running || h.frozen {
		return
	}
	was := h.out.Snapshot
	h.have = h.have || was.Source != Nowhere
	in.Now, in.Coordinator, in.Cloud, in.Fresh = p.Now()-h.began, h.coordinator, h.cloud, h.fresh &&
		h.term != contract.Term{}
	in.Aged = h.aged && was.Source == Nowhere
	in.Stop, in.Have, in.Silent = h.stop, h.have, h.silent && was.Source == Cloud
	h.restored = h.restored && was.Source != Cloud && !was.Ready
	in.Restored = h.restored
	in.Unproven, in.Unable = h.silent, !h.fresh && h.term != contract.Term{}
	h.out = h.m.Step(in)
	s := h.out.Snapshot
	if s.Role != was.Role {
		p.trace(h, "%v: %s", s.Role, s.Reason)
	}
	for _, a := range h.out.Actions {
		p.act(h, a)
	}
	if s.Ready != was.Ready {
		p.trace(h, "ready=%t", s.Ready)
	}
	if s.Source != was.Source {
		p.trace(h, "fed from %v", s.Source)
	}
	if s.Done && !was.Done {
		p.trace(h, "done")
		h.running = false
	}
	if h.out.Wake <= in.Now {
		p.t.Fatalf("%v %s: wake at %v is not in the future", p.Now(), h.name, h.out.Wake)
	}
	var seq int
	seq = p.After(h.out.Wake-in.Now, func() {
		if h.wakeSeq == seq {
			p.step(h, nil)
		}
	})
	h.wakeSeq = seq
	p.check(h)
}

func (p *pool) act(h *hub, a Action) {
	switch a.Kind {
	case Feed:
		h.term = a.Term
		p.trace(h, "feed %v", a.Term)
		p.After(0, func() { p.step(h, nil) }) // fresh may be true now
		return
	case StopFeed:
		h.term = contract.Term{}
		p.trace(h, "stop-feed")
		return
	}
	sent, life := p.Now()-h.began, h.life
	if !h.coordinator {
		p.t.Fatalf("%v %s: %v to a coordinator that is not healthy", p.Now(), h.name, a.Kind)
	}
	p.After(p.latency(), func() {
		r := p.serve(h, a)
		back := p.latency()
		if h.lost {
			r, back = Result{Kind: a.Kind, Outcome: Failed}, 2*time.Second
		}
		r.Sent = sent
		p.After(back, func() {
			if a.Kind == Acquire || a.Kind == Release || r.Outcome != OK {
				p.trace(h, "%v: %v", a.Kind, r.Outcome)
			}
			if h.life != life {
				return
			}
			if h.frozen {
				h.held = append(h.held, r)
				return
			}
			p.step(h, &r)
		})
	})
}

// serve is what the coordinator does with a request.
func (p *pool) serve(h *hub, a Action) Result {
	r := Result{Kind: a.Kind, Incarnation: strconv.Itoa(p.incarnation), Ready: p.sayReady}
	key := ReadElection
	switch a.Kind {
	case ReadStatus:
		return r
	case ReadSync, RenewSync:
		key = ReadSync
	}
	stored := p.leases[key]
	if a.Kind == ReadElection || a.Kind == ReadSync {
		r.Lease = stored
		return r
	}
	if a.Lease.Holder != "" && p.Now() < h.barred {
		r.Outcome = Conflict
		return r
	}
	if stored.Exists != a.Lease.Exists || stored.UID != a.Lease.UID || stored.Version != a.Lease.Version {
		r.Outcome = Conflict
		return r
	}
	p.version++
	l := a.Lease
	l.Exists, l.UID, l.Version = true, strconv.Itoa(p.incarnation), strconv.FormatUint(p.version, 10)
	l.RenewTime = p.wall.Add(p.Now() + h.skew)
	if a.Kind == Acquire {
		l.AcquireTime = l.RenewTime
	}
	p.leases[key] = l
	r.Lease = l
	p.notify(key)
	return r
}

// notify shows a Lease to those who watch it.
func (p *pool) notify(key Kind) {
	if !p.watching {
		return
	}
	l := p.leases[key]
	in := Input{Election: &l}
	if key == ReadSync {
		in = Input{Sync: &l}
	}
	for _, h := range p.hubs {
		p.After(p.latency(), func() {
			if h.coordinator && !h.lost {
				p.stepWith(h, in)
			}
		})
	}
}

// free takes the election Lease from its holder, as a coordinator does whose feed broke.
func (p *pool) free() {
	l := p.leases[ReadElection]
	if !l.Exists || l.Holder == "" {
		return
	}
	version, _ := strconv.ParseUint(l.Version, 10, 64)
	p.freed[strconv.Itoa(p.incarnation)] = version
	p.version++
	l.Holder, l.Version = "", strconv.FormatUint(p.version, 10)
	p.leases[ReadElection] = l
	p.notify(ReadElection)
}

func (p *pool) wipe() {
	p.incarnation++
	p.version = 0
	p.leases = map[Kind]Record{}
}

func (p *pool) hub(name string) []*hub {
	if name == "all" {
		return p.hubs
	}
	for _, h := range p.hubs {
		if h.name == name {
			return []*hub{h}
		}
	}
	p.t.Fatalf("no hub %q", name)
	return nil
}

// do executes one command of a script.
func (p *pool) do(command string) {
	words := strings.Fields(command)
	arg := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "wipe":
		p.wipe()
		return
	case "watches":
		p.watching = true
		return
	case "free":
		p.free()
		return
	case "vouch":
		p.sayReady = true
		return
	case "lease":
		p.version++
		key := map[string]Kind{"election": ReadElection, "sync": ReadSync}[arg(1)]
		p.leases[key] = Record{
			Exists: true, Holder: arg(2), Duration: 30 * time.Second, Version: strconv.FormatUint(p.version, 10),
			RenewTime: p.wall.Add(p.Now()),
		}
		return
	}
	for _, h := range p.hub(arg(1)) {
		up := arg(2) != "down"
		switch words[0] {
		case "start":
			h.running, h.coordinator, h.cloud, h.fresh = true, true, true, true
		case "boot": // starts and has observed nothing yet
			h.running = true
		case "cloud":
			h.cloud = up
		case "coordinator":
			h.coordinator = up
		case "answers":
			h.lost = !up
			continue
		case "fresh":
			h.fresh = up
		case "streams":
			h.silent = !up
		case "clock": // is stepped
			d, err := time.ParseDuration(arg(2))
			if err != nil {
				p.t.Fatalf("%q: %v", command, err)
			}
			h.skew = d
			continue
		case "have":
			h.have = true
			continue
		case "aged":
			h.have, h.aged = true, true
			continue
		case "bar": // the coordinator cannot read it
			h.barred = p.Now() + 15*time.Second
			if p.leases[ReadElection].Holder == h.identity() {
				p.free()
			}
			continue
		case "kill":
			h.running = false
		case "again": // kill -9, and the next process of the node
			h.running, h.frozen, h.held, h.restored = true, false, nil, h.have
			p.make(h)
		case "stop":
			h.stop = true
		case "freeze":
			h.frozen = true
		case "thaw":
			h.frozen = false
			for _, r := range h.held {
				p.step(h, &r)
			}
			h.held = nil
		default:
			p.t.Fatalf("unknown command %q", command)
		}
		p.step(h, nil)
	}
}

// faults draws a random command.
func fault(rng *rand.Rand, names []string) string {
	name := names[rng.IntN(len(names))]
	one := func(s ...string) string { return s[rng.IntN(len(s))] }
	switch rng.IntN(16) {
	case 15:
		return "again " + name
	case 12:
		return "free"
	case 14:
		return fmt.Sprintf("streams %s %s", name, one("up", "down"))
	case 13:
		return fmt.Sprintf("clock %s %v", name, time.Duration(rng.Int64N(int64(2*time.Hour)))-time.Hour)
	case 0, 1:
		return fmt.Sprintf("cloud %s %s", name, one("up", "down"))
	case 2, 3:
		return fmt.Sprintf("coordinator %s %s", name, one("up", "down"))
	case 4, 5, 6:
		return fmt.Sprintf("answers %s %s", name, one("up", "down"))
	case 7, 8:
		return fmt.Sprintf("%s %s", one("freeze", "thaw"), name)
	case 9:
		return fmt.Sprintf("fresh %s %s", name, one("up", "down"))
	case 10:
		return "bar " + name
	default:
		if rng.IntN(4) == 0 {
			return "wipe"
		}
		return "cloud all up"
	}
}
