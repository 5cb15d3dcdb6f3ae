package lifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/manager"
	"github.com/weir-edge/weir/sim/lifecycle/api"
)

// Config of a Run.
type Config struct {
	Schedule Schedule
	// Controllers runs the node lifecycle and taint eviction controllers as a user until the context ends.
	Controllers func(ctx context.Context, as *rest.Config) error
	Trace       func(line string) // nil: nobody looks
	Log         *slog.Logger      // of weir-manager; nil: nobody looks

	// For tests of the judge: what of Weir is left out.
	NoManager, NoForwarding bool
}

const managerUser = "system:serviceaccount:kube-system:weir-manager"

// World is everything that takes part.
type World struct {
	config Config
	began  time.Time
	cloud  *api.Server
	judge  *judge
	admin  kubernetes.Interface

	mu     sync.Mutex // guards all below, and what nodes, hubs and pools hold; nobody waits with it
	rng    *rand.Rand
	nodes  []*node
	pools  []*pool
	outage int              // how many faults keep the cloud away
	killed map[*Fault]*node // the leader that a fault killed

	managers    []*process // replicas of weir-manager
	controllers *process
}

// Run runs a schedule and returns what was judged.
func Run(ctx context.Context, c Config) (Verdict, error) {
	w := &World{config: c, began: time.Now(), killed: map[*Fault]*node{}, rng: rand.New(rand.NewPCG(c.Schedule.Seed, 2))}
	if c.Log == nil {
		w.config.Log = slog.New(slog.DiscardHandler)
	}
	w.judge = newJudge(w)
	w.cloud = api.New(api.Config{
		PolicyLag: c.Schedule.PolicyLag, Deleted: w.judge.deleted, Updated: w.judge.updated, Denied: w.judge.denied,
	})
	var err error
	if w.admin, err = kubernetes.NewForConfig(w.cloud.As("admin")); err != nil {
		return Verdict{}, err
	}
	if err := w.build(ctx); err != nil {
		return Verdict{}, err
	}
	w.locked(w.judge.begin)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	w.controllers = newProcess(ctx, &running, w.control)
	if !c.NoManager {
		for range max(1, c.Schedule.Managers) {
			w.managers = append(w.managers, newProcess(ctx, &running, w.manage))
		}
	}
	for _, n := range w.nodes {
		w.locked(func() { n.start(ctx, &running) })
	}
	for _, p := range w.pools {
		running.Go(func() { p.elect(ctx) })
	}
	running.Go(func() { w.judge.watch(ctx) })
	for _, p := range append(w.managers, w.controllers) {
		p.start()
	}
	w.play(ctx, &running)
	return w.judge.verdict(), ctx.Err()
}

// manage runs a replica of weir-manager, again and again if it ends by itself, as one does that loses its Lease.
func (w *World) manage(ctx context.Context) {
	for {
		m, err := manager.New(manager.Config{
			REST: w.cloud.As(managerUser), MetricsBindAddress: "0",
			HealthProbeBindAddress: "0",
			LeaderElect:            w.config.Schedule.Managers > 1, LeaderElectLeaseDuration: 15 * time.Second,
			LeaderElectRenewDeadline: 10 * time.Second,
			LeaderElectRetryPeriod:   2 * time.Second, NodeMonitorGracePeriod: heartbeat.Grace, WhenSilent: "keep",
			Logger: w.config.Log,
		})
		if err == nil {
			err = m.Run(ctx)
		}
		if ctx.Err() != nil {
			return
		}
		w.trace("weir-manager ends: %v", err)
		if !sleep(ctx, w.draw(time.Second, 10*time.Second)) {
			return
		}
	}
}

func (w *World) control(ctx context.Context) {
	user := api.NodeController
	if w.config.Schedule.OneUser {
		user = api.AllControllers
	}
	if err := w.config.Controllers(ctx, w.cloud.As(user)); err != nil && ctx.Err() == nil {
		w.trace("controllers end: %v", err)
	}
}

func (w *World) now() time.Duration { return time.Since(w.began) }

func (w *World) locked(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

func (w *World) trace(format string, args ...any) {
	if w.config.Trace != nil {
		w.config.Trace(fmt.Sprintf("%9.3f ", w.now().Seconds()) + fmt.Sprintf(format, args...))
	}
}

// span is a random time. The lock is held.
func (w *World) span(from, to time.Duration) time.Duration {
	return from + time.Duration(w.rng.Int64N(int64(to-from)+1))
}

// draw is span without the lock.
func (w *World) draw(from, to time.Duration) (d time.Duration) {
	w.locked(func() { d = w.span(from, to) })
	return d
}

func (w *World) named(name string) *node {
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	return nil
}

func (w *World) podOf(o *api.Object) *corev1.Pod {
	var p corev1.Pod
	if err := o.Decode(&p); err != nil {
		panic(err)
	}
	return &p
}

// sleep waits; false: the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// process is something that is started and killed.
type process struct {
	ctx     context.Context
	running *sync.WaitGroup
	run     func(ctx context.Context)

	kill func() // nil: it does not run
	gone chan struct{}
}

func newProcess(ctx context.Context, running *sync.WaitGroup, run func(context.Context)) *process {
	return &process{ctx: ctx, running: running, run: run}
}

func (p *process) start() {
	if p.kill != nil {
		return
	}
	ctx, cancel := context.WithCancel(p.ctx)
	gone := make(chan struct{})
	p.kill, p.gone = cancel, gone
	p.running.Go(func() {
		defer close(gone)
		p.run(ctx)
	})
}

// stop ends it and waits.
func (p *process) stop() {
	if p.kill != nil {
		p.kill()
		<-p.gone
		p.kill = nil
	}
}
