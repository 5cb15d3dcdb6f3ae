package lifecycle

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/heartbeat"
)

const (
	forwardParallel = 4
	probeEvery      = 5 * time.Second
	coordinatorWait = 2 * time.Second // for an answer of the coordinator
)

// errLost is of a request or an answer that did not arrive.
var errLost = errors.New("no answer")

// hub is what a hub does around package heartbeat: it takes the heartbeats of its kubelet, mirrors them, watches those
// of others, and forwards them while it leads. The World's lock guards it.
type hub struct {
	n       *node
	w       *World
	ctx     context.Context
	stop    context.CancelFunc
	running *sync.WaitGroup

	born time.Duration
	node heartbeat.Node
	fwd  *heartbeat.Forwarder
	kick chan struct{} // something is to be asked of fwd

	cloud   bool   // what probes say of it
	version string // of the node's Lease in the coordinator
	unsay   func() // stops to write the last statement
}

// newHub starts a hub. The lock is held.
func newHub(ctx context.Context, running *sync.WaitGroup, n *node) *hub {
	h := &hub{
		n: n, w: n.w, running: running, born: n.w.now(), fwd: heartbeat.NewForwarder(forwardParallel),
		kick: make(chan struct{}, 1), cloud: n.toCloud(), unsay: func() {},
	}
	h.ctx, h.stop = context.WithCancel(ctx)
	if n.pool == nil {
		h.cloud = true
		return h
	}
	for _, loop := range []func(){h.probe, h.watch, h.forward} {
		running.Go(loop)
	}
	return h
}

// lead reports whether it leads. The lock is held.
func (h *hub) lead(yes bool) {
	h.fwd.Lead(yes && !h.w.config.NoForwarding)
	h.poke()
}

func (h *hub) poke() {
	select {
	case h.kick <- struct{}{}:
	default:
	}
}

// probe keeps knowing whether the cloud is there.
func (h *hub) probe() {
	for sleep(h.ctx, h.w.draw(probeEvery/2, probeEvery)) {
		h.w.locked(func() { h.cloud = h.n.toCloud() })
	}
}

// ask asks over a link, which has to be open until the answer is back.
func (h *hub) ask(ctx context.Context, limit time.Duration, open func() bool, do func(context.Context)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for _, step := range []func(context.Context){do, func(context.Context) {}} {
		var way time.Duration
		h.w.locked(func() {
			way = h.w.span(time.Millisecond, 400*time.Millisecond)
			if !open() {
				way = limit
			}
		})
		if !sleep(ctx, way) {
			return errLost
		}
		lost := false
		h.w.locked(func() { lost = !open() })
		if lost {
			<-ctx.Done()
			return errLost
		}
		step(ctx)
	}
	return nil
}

// heartbeat takes one of the kubelet; false: the kubelet has to try again.
func (h *hub) heartbeat(ctx context.Context) (done bool) {
	var plan heartbeat.Plan
	var renew time.Time
	var have heartbeat.Lease
	h.w.locked(func() {
		renew, have = h.n.clock(), h.n.lease
		plan = h.node.Beat(h.w.now(), h.cloud)
	})
	switch plan {
	case heartbeat.Keep:
		h.w.locked(func() { h.node.Passed(h.w.now(), false) })
		h.mirror(renew)
		return true
	case heartbeat.Return:
		h.withdraw()
	case heartbeat.Pass:
	}
	x := heartbeat.Lease{Version: have.Version, Renew: heartbeat.Later(renew, have.Renew)}
	var got heartbeat.Lease
	out := heartbeat.Failed
	err := h.ask(ctx, heartbeat.Attempt, h.n.toCloud, func(ctx context.Context) {
		got, out = h.w.leases.write(ctx, h.n.name, x)
	})
	h.w.locked(func() {
		h.node.Passed(h.w.now(), err == nil && out != heartbeat.Failed)
		if err == nil && out == heartbeat.OK {
			h.n.lease = got
		}
	})
	h.mirror(renew)
	if err != nil || out != heartbeat.Conflict {
		return true
	}
	err = h.ask(ctx, heartbeat.Interval, h.n.toCloud, func(ctx context.Context) {
		got, out = h.w.leases.read(ctx, h.n.name)
	})
	if err == nil && out == heartbeat.OK {
		h.w.locked(func() { h.n.lease = got })
	}
	return false
}

// mirror writes what the last heartbeat came to into the coordinator, as long as that is worth it.
func (h *hub) mirror(renew time.Time) {
	if h.n.pool == nil || h.ctx.Err() != nil {
		return
	}
	var ctx context.Context
	var s heartbeat.Statement
	h.w.locked(func() {
		h.unsay()
		ctx, h.unsay = context.WithCancel(h.ctx)
		s = h.node.Statement(renew)
	})
	if !s.Needed {
		return
	}
	h.running.Go(func() {
		for ctx.Err() == nil && h.w.now() < s.Until {
			if h.put(ctx, func(l *heartbeat.Lease) { l.Renew, l.Delegated = s.Renew, s.Delegated }) == heartbeat.OK {
				h.w.locked(func() { h.node.Written(s) })
				return
			}
			if !sleep(ctx, 100*time.Millisecond) {
				return
			}
		}
	})
}

// withdraw withdraws that the node is cut off.
func (h *hub) withdraw() {
	ctx, cancel := context.WithTimeout(h.ctx, heartbeat.Withdraw)
	defer cancel()
	h.w.locked(func() { h.unsay() })
	for h.put(ctx, func(l *heartbeat.Lease) { l.Delegated = false }) != heartbeat.OK && sleep(ctx, 50*time.Millisecond) {
	}
}

// put writes the node's Lease in the coordinator, at the version that is known; a conflict tells it.
func (h *hub) put(ctx context.Context, change func(*heartbeat.Lease)) (out heartbeat.Outcome) {
	var got heartbeat.Lease
	err := h.ask(ctx, coordinatorWait, h.n.toPool, func(context.Context) {
		h.w.locked(func() {
			l := h.n.pool.leases[h.n.name]
			change(&l)
			got, out = h.n.pool.put(h.n.name, l, h.version)
		})
	})
	if err != nil {
		return heartbeat.Failed
	}
	h.w.locked(func() { h.version = got.Version })
	return out
}

// watch follows the Leases of the pool: it looks at all of them, then sees changes, and begins again when that broke.
func (h *hub) watch() {
	p := h.n.pool
	for h.ctx.Err() == nil {
		seen, life := -1, 0
		h.w.locked(func() {
			if !h.n.toPool() {
				return
			}
			seen, life = len(p.log), p.life
			var names []string
			for name, l := range p.leases {
				if l.Delegated {
					names = append(names, name)
					h.fwd.See(h.w.now(), name, l, false)
				}
			}
			h.fwd.Listed(h.w.now(), names)
		})
		if seen < 0 {
			sleep(h.ctx, time.Second)
			continue
		}
		h.poke()
		h.follow(seen, life)
	}
}

// follow sees changes until the watch breaks.
func (h *hub) follow(seen, life int) {
	p := h.n.pool
	for h.ctx.Err() == nil {
		var news []mirrored
		var changed chan struct{}
		broken := false
		h.w.locked(func() {
			broken = !h.n.toPool() || p.life != life
			if !broken {
				news, changed, seen = p.log[seen:], p.changed, len(p.log)
			}
		})
		if broken {
			return
		}
		if len(news) == 0 {
			select {
			case <-changed:
			case <-time.After(time.Second):
			case <-h.ctx.Done():
			}
			continue
		}
		if !sleep(h.ctx, h.w.draw(time.Millisecond, 500*time.Millisecond)) {
			return
		}
		h.w.locked(func() {
			for _, x := range news {
				if x.lease.Delegated {
					h.fwd.See(h.w.now(), x.node, x.lease, true)
				} else {
					h.fwd.Gone(h.w.now(), x.node)
				}
			}
		})
		h.poke()
	}
}

// forward does what its Forwarder says.
func (h *hub) forward() {
	for h.ctx.Err() == nil {
		var actions []heartbeat.Action
		var wake time.Duration
		h.w.locked(func() { actions, wake = h.fwd.Next(h.w.now()) })
		for _, a := range actions {
			h.running.Go(func() {
				r := h.perform(a)
				h.w.locked(func() { h.fwd.Done(h.w.now(), r) })
				h.poke()
			})
		}
		t := time.NewTimer(max(wake-h.w.now(), time.Millisecond))
		select {
		case <-t.C:
		case <-h.kick:
		case <-h.ctx.Done():
		}
		t.Stop()
	}
}

func (h *hub) perform(a heartbeat.Action) heartbeat.Result {
	r := heartbeat.Result{Kind: a.Kind, Node: a.Node, Outcome: heartbeat.Failed}
	var err error
	switch a.Kind {
	case heartbeat.ReadPool:
		err = h.ask(h.ctx, coordinatorWait, h.n.toPool, func(context.Context) {
			h.w.locked(func() {
				l, ok := h.n.pool.leases[a.Node]
				r.Lease, r.Outcome = l, heartbeat.OK
				if !ok {
					r.Outcome = heartbeat.Absent
				}
			})
		})
	case heartbeat.ReadCloud:
		err = h.ask(h.ctx, heartbeat.Attempt, h.n.toCloud,
			func(ctx context.Context) { r.Lease, r.Outcome = h.w.leases.read(ctx, a.Node) })
	case heartbeat.Write:
		err = h.ask(h.ctx, heartbeat.Attempt, h.n.toCloud,
			func(ctx context.Context) { r.Lease, r.Outcome = h.w.leases.write(ctx, a.Node, a.Lease) })
		h.w.judge.forwarded(err == nil && r.Outcome == heartbeat.OK)
	}
	if err != nil {
		r.Outcome = heartbeat.Failed
	}
	return r
}
