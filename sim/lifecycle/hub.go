package lifecycle

import (
	"context"
	"net/http"
	"sync"
	"time"

	utilclock "k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/lease"
)

const (
	probeEvery = 5 * time.Second
	patience   = 2 * time.Second // for an answer of the coordinator
)

// hub is the hub of a node: package beat as a hub runs it, and its links to the cloud and to the coordinator.
type hub struct {
	n    *node
	ctx  context.Context
	stop context.CancelFunc
	born time.Duration

	answers    *answer.Stalls
	beats      *beat.Beats
	forwarding *beat.Forwarding // nil: it is in no pool
	reporter   *beat.Reporter   // likewise
	cloud      link
	reachable  bool // what probes say of the cloud; the World's lock guards it
}

// newHub starts a hub. The lock is held.
func newHub(ctx context.Context, running *sync.WaitGroup, n *node) *hub {
	clk, log := utilclock.RealClock{}, n.w.config.Log.With("hub", n.name)
	h := &hub{n: n, born: n.w.now(), reachable: n.toCloud() || n.pool == nil}
	h.cloud = link{n.w, n.toCloud, func() http.RoundTripper { return n.w.cloud.As("hub").Transport }}
	h.answers = answer.NewStalls(clk, func() {}, &answer.Served{}, log)
	h.ctx, h.stop = context.WithCancel(ctx)
	c := beat.BeatsConfig{Node: n.name, Cloud: h, Pool: beat.Alone{}, Clock: clk, Logger: log, Count: func(string) {}}
	if n.pool != nil {
		pool := n.pool.seen(n)
		mirror := beat.NewMirror(beat.MirrorConfig{
			Coordinator: pool, Node: n.name, Timeout: patience, Clock: clk, Logger: log, Count: func(string) {},
		})
		h.forwarding = beat.NewForwarding(beat.ForwardingConfig{
			Cloud: h, Coordinator: pool, Own: lease.NewNodes(clk), Timeout: patience, Clock: clk, Logger: log,
			Count: n.w.judge.forwarded,
		})
		c.Pool, c.Roll = mirror, beat.NewRollCall(beat.RollCallConfig{
			Node: n.name, Pool: n.pool.name, Desk: desks{n}, Trusted: n.pool.trusted, Clock: clk, Logger: log,
		})
		h.reporter = beat.NewReporter(beat.ReporterConfig{
			Pool: n.pool.name, Cloud: h, Desks: desks{n}, Trusted: n.pool.trusted, Period: c.Roll.Period, Clock: clk,
			Logger: log, Count: func(string) {},
		})
		running.Go(func() { _ = h.reporter.Run(h.ctx) })
		running.Go(func() { _ = mirror.Run(h.ctx) })
		running.Go(func() { _ = h.forwarding.Run(h.ctx) })
		running.Go(h.probe)
	}
	h.beats = beat.NewBeats(c)
	if n.pool != nil {
		running.Go(func() { _ = beat.Overdue(h.ctx, h.beats) })
	}
	return h
}

// lead says whether it leads.
func (h *hub) lead(yes bool) {
	h.forwarding.Lead(yes && !h.n.w.config.NoForwarding)
	h.reporter.Lead(yes)
}

// probe looks again and again whether the cloud is there.
func (h *hub) probe() {
	for sleep(h.ctx, h.n.w.draw(probeEvery/2, probeEvery)) {
		h.n.w.locked(func() { h.reachable = h.n.toCloud() })
	}
}

// Able implements beat.Cloud.
func (h *hub) Able() bool { return true }

// Reachable implements beat.Cloud.
func (h *hub) Reachable() (yes bool) {
	h.n.w.locked(func() { yes = h.reachable })
	return yes
}

// Send implements beat.Cloud.
func (h *hub) Send(ctx context.Context, m uplink.Message) (*uplink.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat.Attempt)
	defer cancel()
	return m.Ask(ctx, h.cloud.RoundTrip)
}
