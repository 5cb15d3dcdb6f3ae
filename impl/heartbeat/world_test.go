package heartbeat

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/testkit"
)

// world is a pool, its coordinator and a cloud in virtual time: one queue of events, in an order that a seed decides.
type world struct {
	testkit.Loop

	rng    *rand.Rand
	serial int  // counts what was asked for: an order of all that nodes sent
	quick  bool // delays are as the budget has them

	cloud map[string]*stored
	pool  map[string]*stored
	down  bool // the coordinator
	nodes []*simNode

	delegations int
	trace       []string // decisions, without any wall clock
	faults      []string // what must not be
}

// stored is a Lease in a store.
type stored struct {
	lease   Lease
	version int
	grew    time.Duration
	longest time.Duration // between two times that it grew
	judged  bool          // longest is being measured
	own     int           // when the node's hub sent the last write of its own that was applied
	unsure  bool          // and it could not revoke before that the node is cut off
}

// simNode is a node with its kubelet and hub.
type simNode struct {
	*world
	name  string
	node  Node
	fwd   *Forwarder
	wall  time.Duration // of its clock, beside that of the world
	alive bool          // the kubelet
	cut   bool          // from the cloud
	lan   bool          // reaches the coordinator

	base      string    // version of the Lease that the kubelet holds
	known     time.Time // renewTime that the cloud is known to have
	said      int       // when the hub last sent a statement that it is cut off
	unsure    bool      // it could not take that back
	mirrored  string    // version of the Lease in the coordinator
	watching  bool
	lag       time.Duration // of its watch
	armed     time.Duration // when its Forwarder is asked again
	statement *Statement
	writing   bool
	died      time.Duration
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newWorld(seed uint64, nodes int, quick bool) *world {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), quick: quick, cloud: map[string]*stored{}, pool: map[string]*stored{}}
	for i := range nodes {
		n := &simNode{world: w, name: "edge-" + strconv.Itoa(i+1), fwd: NewForwarder(4), alive: true, lan: true}
		w.cloud[n.name] = &stored{lease: Lease{Version: "1", Renew: epoch}, version: 1}
		n.base, n.known, n.lag = "1", epoch, 20*time.Millisecond
		if !quick {
			n.lag = w.span(0, 3*time.Second)
		}
		w.nodes = append(w.nodes, n)
		n.watch()
		w.after(w.span(0, Interval), n.beat)
	}
	w.nodes[0].fwd.Lead(true)
	return w
}

func (w *world) after(d time.Duration, do func()) {
	w.serial++
	w.After(d, do)
}

// span is a random time.
func (w *world) span(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rng.Int64N(int64(to-from)+1))
}

func (w *world) note(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%v ", w.Now())+fmt.Sprintf(format, args...))
}

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf("%v ", w.Now())+fmt.Sprintf(format, args...))
}

// delay is the time of one way: to the coordinator, or over the uplink.
func (w *world) delay(uplink bool) time.Duration {
	switch {
	case uplink && w.quick:
		return w.span(20*time.Millisecond, 400*time.Millisecond)
	case uplink && w.rng.IntN(20) == 0:
		return w.span(time.Second, 20*time.Second) // a black hole that lets it through in the end
	case uplink:
		return w.span(20*time.Millisecond, 2*time.Second)
	case !w.quick && w.rng.IntN(20) == 0:
		return w.span(time.Second, 20*time.Second)
	}
	return w.span(time.Millisecond, 200*time.Millisecond)
}

// ask sends something and takes the answer, once: an answer that is lost or late is a failure after limit, and what was
// sent may be applied all the same.
func (w *world) ask(uplink bool, limit time.Duration, reaches func() bool, apply func() any, then func(answer any)) {
	answered := false
	answer := func(a any) {
		if !answered {
			answered = true
			then(a)
		}
	}
	w.after(limit, func() { answer(nil) })
	if !reaches() && (w.quick || w.rng.IntN(4) > 0) {
		return // some are applied when the way is open again
	}
	there := w.delay(uplink)
	var arrive func()
	arrive = func() {
		if !reaches() {
			if !w.quick && w.rng.IntN(3) > 0 {
				w.after(w.span(0, 10*time.Second), arrive)
			}
			return
		}
		a := apply()
		if reaches() {
			w.after(w.delay(uplink), func() { answer(a) })
		}
	}
	w.after(there, arrive)
}

// put writes a Lease if it is at a version; "" creates it. It returns nil on conflict.
func (s *stored) put(w *world, l Lease, version string) *Lease {
	if version != s.lease.Version {
		return nil
	}
	s.version++
	grows := l.Renew.After(s.lease.Renew)
	s.lease = l
	s.lease.Version = strconv.Itoa(s.version)
	if grows {
		if s.judged {
			s.longest = max(s.longest, w.Now()-s.grew)
		}
		s.grew = w.Now()
	}
	out := s.lease
	return &out
}

func (w *world) named(name string) *simNode {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (n *simNode) clock() time.Time { return epoch.Add(time.Hour + n.Now() + n.wall) }

func (n *simNode) toCloud() bool { return !n.cut }
func (n *simNode) toPool() bool  { return n.lan && !n.down }
