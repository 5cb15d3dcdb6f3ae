package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
	"github.com/weir-edge/weir/sim/workload"
)

// Options of a run.
type Options struct {
	Runtime  runtime.Runtime
	Dir      string       // folder of the report
	Repeat   string       // the command that repeats the run
	Revision string       // of the source
	Progress func(string) // told what happens, at least every few seconds; may be nil
}

// Patience of a run, in the order in which it may run out.
const (
	syncPatience   = 3 * time.Minute  // until caches and clients are there
	settlePatience = 2 * time.Minute  // until everything is delivered with Weir and in the reference
	stockPatience  = 10 * time.Minute // until the stock way has caught up
	tick           = 200 * time.Millisecond
)

// way is one of the three ways to carry the workload.
type way struct {
	name    string   // report.WayWeir, …
	pools   []string // one for each of the scenario's
	nodes   []string // of all of them
	streams []*stream
	bytes   report.ByteTable // at the end of its window
	ended   time.Time
}

type run struct {
	Options

	s       *scenario.Scenario
	site    runtime.Site
	version string // of its kube-apiserver
	admin   kubernetes.Interface
	work    *workload.Workload
	time    *timeline.Writer
	began   time.Time
	ways    []*way                 // those of reference, stock that there are, and weir
	record  func() (*truth, error) // until the run ends
	history atomic.Pointer[truth]  // the present one
	marker  *workload.Marker
	writing sync.Mutex // held by the one that writes to the cloud, and while it cannot be written to
	reach   *reach
	outages outages
	faults  []episode // those that are over; outages.mu guards it, marks and late
	late    int       // markers that did not reach everybody who can be served
	stale   staleness
	offline offline
	configs configs
	turn    turn
	before  rotation // what hubs counted when all caches were there
	lies    lies
	watches watches
	lives   lives              // where nodes and pools are now
	lists   map[string]float64 // of relays, when all caches were there
	// from a change of an object until the pool went by it, longest; outages.mu guards it.
	applied time.Duration
	hubs    map[string]<-chan struct{} // the process of each hub when all caches were there
	moves   moves
	// versions of objects that the cloud was given while the workload changed.
	versions int

	revocations revocations
	// watching is the life of all clients; it ends when they are judged.
	watching     context.Context
	stopWatching context.CancelFunc
	synced       time.Time // when all caches and clients were there

	fullList int64 // bytes of one list of each pool-scope resource, compressed
	ready    readiness
	peaks    peaks
	marks    []report.Mark
	metrics  report.Values

	background sync.WaitGroup // everything that runs beside the steps
}

// Run runs a scenario. The result is worth reporting even with an error: it then tells how far the run came.
func Run(ctx context.Context, s *scenario.Scenario, o Options) (res report.Result, err error) {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if s = s.Drawn(); len(s.Faults) > 0 {
		for _, f := range s.Faults {
			o.Progress(fmt.Sprintf("fault at %v for %v: %s", f.At, f.For, f))
		}
	}
	r := &run{
		Options: o, s: s, metrics: report.Values{}, reach: newReach(), peaks: peaks{peak: map[runtime.PartID]report.Memory{}},
	}
	r.configs.all = map[[2]string]*rest.Config{}
	r.outages = outages{dead: map[string]time.Time{}, quiet: map[string]int{}, parts: map[runtime.PartID]*sync.Mutex{}}
	started := time.Now()
	defer func() {
		res = r.report(started, err)
	}()
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return res, err
	}
	if r.time, err = timeline.Create(filepath.Join(o.Dir, "timeline.jsonl"), clock.RealClock{}); err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, r.time.Close()) }()
	if err := Suits(s, o.Runtime); err != nil {
		return res, err
	}
	if r.site, err = o.Runtime.Up(ctx, r.topology(), o.Progress); err != nil {
		return res, err
	}
	asked := ctx // ends only when somebody asks for it
	defer func() {
		if e, ok := r.site.(runtime.Evidence); ok && asked.Err() == nil && (err != nil || !r.report(started, nil).Passed) {
			err = errors.Join(err, e.SaveEvidence(context.WithoutCancel(ctx)))
		}
		r.Progress("stopping everything")
		err = errors.Join(err, r.site.Down(context.WithoutCancel(ctx)))
	}()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer r.background.Wait()
	defer cancel(nil)
	if r.version, err = cloudVersion(r.site); err != nil {
		return res, err
	}
	r.watching, r.stopWatching = context.WithCancel(ctx)
	r.background.Go(func() { r.watchParts(ctx) })
	if err := r.steps(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return res, err
	}
	return res, nil
}

// Suits reports whether a runtime can do what a scenario asks for.
func Suits(s *scenario.Scenario, r runtime.Runtime) error {
	limited, ok := r.(runtime.Limited)
	if !ok {
		return nil
	}
	if why := limited.Lacks(runtime.Moves); s.Moves() && why != "" {
		return fmt.Errorf("scenario %s does not run on %s: a node goes to another pool: %s", s.Name, r.Name(), why)
	}
	for _, f := range s.Faults {
		if f.Target != scenario.APIServer && f.Target != scenario.ControllerManager && f.Target != scenario.Gate {
			continue
		}
		if why := limited.Lacks(string(f.Target)); why != "" {
			return fmt.Errorf("scenario %s does not run on %s: fault %s: %s", s.Name, r.Name(), f, why)
		}
	}
	hollow, instead := s.Study.Hollow()
	if why := limited.Lacks(runtime.HollowNodes); hollow && why != "" {
		return fmt.Errorf("scenario %s, about %s, does not run on %s: %s%s", s.Name, s.Study.Name(), r.Name(), why, instead)
	}
	return nil
}

// topology puts the pools beside each other. Those to compare with are links and our clients, nothing else, on every
// runtime.
func (r *run) topology() runtime.Topology {
	t := runtime.Topology{
		Tools: r.s.Tools(), Controllers: r.s.Topology.Controllers, Manager: r.s.Topology.Has(scenario.Pool.Asks),
	}
	t.Gate = r.s.Topology.Gate
	t.Described, t.Lifecycle = t.Manager, r.s.Topology.Has(func(p scenario.Pool) bool { return p.Placed })
	for _, name := range []string{report.WayReference, report.WayStock, report.WayWeir} {
		if name != report.WayWeir && !slices.Contains(r.s.Compare, name) {
			continue
		}
		w := &way{name: name}
		for _, p := range r.poolsOf(name) {
			w.pools, w.nodes = append(w.pools, p.Name), append(w.nodes, p.NodeNames()...)
			t.Pools = append(t.Pools, p)
		}
		r.ways = append(r.ways, w)
	}
	return t
}

// poolsOf are the pools of a way, in the order of the scenario.
func (r *run) poolsOf(way string) []runtime.Pool {
	if way == report.WayWeir {
		return layout.WeirPools(r.s)
	}
	pools := layout.Watching(r.s, runtime.Stock).Pools
	for i := range pools {
		name := way
		if len(pools) > 1 {
			name += "-" + pools[i].Name
		}
		pools[i].Name, pools[i].Bare = name, true
		if way == report.WayReference {
			pools[i].Nodes = 1
		}
	}
	return pools
}

// way returns the way of a name; one that the scenario leaves out has no clients, so nobody in it is ever behind.
func (r *run) way(name string) *way {
	for _, w := range r.ways {
		if w.name == name {
			return w
		}
	}
	return &way{name: name}
}

// truth is the present history of the cloud.
func (r *run) truth() *truth { return r.history.Load() }

func (r *run) weir() *way { return r.way(report.WayWeir) }

// others are the ways that Weir is compared with.
func (r *run) others() []*way {
	return slices.DeleteFunc(slices.Clone(r.ways), func(w *way) bool { return w.name == report.WayWeir })
}

func (r *run) steps(ctx context.Context) error {
	for _, step := range []struct {
		phase string
		do    func(context.Context) error
	}{
		{"fill", r.fill}, {"sync", r.sync}, {"quiet", r.quiet}, {phaseChurn, r.churn}, {"settle", r.settle},
		{"catch-up", r.catchUp}, {phaseAlone, r.changeAlone},
	} {
		if step.phase == "quiet" && r.s.Workload.Quiet == 0 ||
			step.phase == phaseAlone && r.s.Workload.Alone == 0 ||
			step.phase == "catch-up" && !slices.Contains(r.s.Compare, report.WayStock) {
			continue
		}
		r.phase(step.phase)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.phase, err)
		}
	}
	return r.judge(ctx)
}

// phase names what is counted and drawn from now on.
func (r *run) phase(name string) {
	for _, w := range r.ways {
		for _, l := range r.linksOf(w) {
			l.SetPhase(name)
		}
		if !r.began.IsZero() {
			r.marks = append(r.marks, report.Mark{Way: w.name, Seconds: time.Since(r.began).Seconds(), Label: name})
		}
	}
	r.time.Emit(timeline.Event{Lane: timeline.Phase, Name: name})
}

// fill writes the workload, with a recorder of the whole history beside.
func (r *run) fill(ctx context.Context) (err error) {
	if r.admin, err = workload.NewClient(r.reach.through(r.site.Admin())); err != nil {
		return err
	}
	w := r.s.Workload
	if w.Widgets > 0 {
		if err := workload.InstallWidgets(ctx, r.site.Admin()); err != nil {
			return err
		}
		if err := workload.FillWidgets(ctx, r.site.Admin(), r.s.Seed, w.Widgets); err != nil {
			return err
		}
	}
	r.record = func() (*truth, error) { return recordTruth(ctx, r.site.Admin(), w.Widgets > 0) }
	t, err := r.record()
	if err != nil {
		return err
	}
	r.history.Store(t)
	for _, s := range r.truth().streams {
		r.background.Go(s.Wait)
	}
	if err := r.until(ctx, syncPatience, func() (bool, string) {
		return r.truth().synced(), "waiting for the recorders of the truth"
	}); err != nil {
		return err
	}
	r.work = workload.New(workload.Config{
		Seed: r.s.Seed, Services: w.Services, Endpoints: w.Endpoints, Nodes: r.weir().nodes,
	})
	if len(r.s.Faults) > 0 {
		if r.marker, err = workload.NewMarker(ctx, r.admin); err != nil {
			return err
		}
	}
	if err := r.work.Fill(ctx, r.admin, r.counting("objects written")); err != nil {
		return err
	}
	r.fullList, err = measureFullList(ctx, r.site.Admin())
	return err
}

// counting tells progress every few seconds.
func (r *run) counting(what string) func(done, total int) {
	var last time.Time
	return func(done, total int) {
		if time.Since(last) > 3*time.Second || done == total {
			last = time.Now()
			r.Progress(fmt.Sprintf("%s: %d of %d", what, done, total))
		}
	}
}

// sync starts everything at once and waits until the reference and Weir have it all. The stock way goes on by itself.
func (r *run) sync(ctx context.Context) error {
	r.began = time.Now()
	if r.countsWatches() {
		var err error
		if r.watches.before, err = r.settledWatches(ctx); err != nil {
			return err
		}
	}
	r.ready = readiness{began: r.began, seen: map[[3]string]report.Readiness{}}
	for _, w := range r.others() {
		if err := r.startClients(ctx, w); err != nil {
			return err
		}
	}
	if err := r.countStockWatches(ctx, r.way(report.WayStock)); err != nil {
		return err
	}
	if err := r.startWeir(ctx); err != nil {
		return err
	}
	// what a hub watches for its clients before it is granted to its own user goes on through the cloud, and ends with it.
	if r.s.Topology.Has(func(p scenario.Pool) bool { return p.Enrols }) {
		if err := r.enrolled(ctx); err != nil {
			return err
		}
	}
	if err := r.startClients(ctx, r.weir()); err != nil {
		return err
	}
	err := r.until(ctx, syncPatience, func() (bool, string) {
		ready := r.pollReady(ctx)
		a, b := r.way(report.WayReference).synced(), r.weir().synced()
		return ready && a == 0 && b == 0,
			fmt.Sprintf("waiting for caches and clients: pool ready: %v, clients not synced: reference %d, weir %d, stock %d",
				ready, a, b, r.way(report.WayStock).synced())
	})
	if err != nil {
		return err
	}
	if err := r.enrolled(ctx); err != nil {
		return err
	}
	r.synced, r.hubs = time.Now(), r.hubProcesses()
	if r.s.OnlyChanges() {
		var err error
		if r.lists, err = r.relayLists(ctx); err != nil {
			return err
		}
	}
	r.metrics["cache_ready_seconds"] = r.readySeconds()
	if err := r.countWatches(ctx); err != nil {
		return err
	}
	return r.kubectl(ctx, r.weir())
}

func (r *run) startWeir(ctx context.Context) error {
	ids := r.coordinators()
	r.Progress(fmt.Sprintf("starting %d hubs and %d coordinators", len(r.weir().nodes), len(ids)))
	if r.s.Topology.Has(scenario.Pool.Asks) {
		ids = append(ids, runtime.Manager)
	}
	if r.s.Topology.Gate {
		ids = append(ids, runtime.Gate)
	}
	if r.s.Topology.Controllers {
		ids = append(ids, runtime.ControllerManager, runtime.Scheduler)
	} else if _, err := r.site.Part(runtime.ControllerManager); err == nil {
		ids = append(ids, runtime.ControllerManager)
	}
	apart := r.s.Topology.JoinEvery
	if apart == 0 {
		return runtime.Start(ctx, r.site, append(ids, r.weirHubs()...)...)
	}
	if err := runtime.Start(ctx, r.site, ids...); err != nil {
		return err
	}
	next := time.NewTicker(apart)
	defer next.Stop()
	for i, id := range r.weirHubs() {
		if i%10 == 0 {
			r.Progress(fmt.Sprintf("hub %d of %d starts", i+1, len(r.weir().nodes)))
		}
		if err := runtime.Start(ctx, r.site, id); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next.C:
		}
	}
	return nil
}

// weirHubs are the hubs of the way with Weir.
func (r *run) weirHubs() (ids []runtime.PartID) {
	for _, n := range r.weir().nodes {
		ids = append(ids, runtime.HubOf(n))
	}
	return ids
}

// pollReady notes which caches are there; true when all are.
func (r *run) pollReady(ctx context.Context) bool {
	all := true
	for _, id := range r.site.Parts() {
		node := id.Of()
		switch id.Kind() {
		case "hub":
		case "coordinator":
			node = ""
		default:
			continue
		}
		p, err := r.site.Part(id)
		at := report.Readiness{Way: report.WayWeir, Pool: r.tells(id), Node: node}
		// the hub of a pool of one node leads, and nobody reads the coordinator.
		alone := node == "" && r.hubsOf(at.Pool) == 1
		if err != nil || !r.ready.poll(ctx, at, p, alone) {
			all = false
		}
	}
	return all
}

// hubsOf is how many hubs a pool has, by the name that tells has.
func (r *run) hubsOf(pool string) (n int) {
	for _, id := range r.site.Parts() {
		if id.Kind() == "hub" && r.tells(id) == pool {
			n++
		}
	}
	return n
}

// readySeconds is when the last cache of the pool was there.
func (r *run) readySeconds() float64 {
	var last float64
	for _, x := range r.ready.list() {
		last = max(last, x.Seconds)
	}
	return last
}

// settle waits until all faults are healed, and all that changed is delivered in the reference and with Weir, and
// closes their window.
func (r *run) settle(ctx context.Context) error {
	defer func() {
		for _, w := range r.ways {
			if w.name != report.WayStock {
				w.bytes, w.ended = r.bytesTable(w), time.Now()
			}
		}
		r.stale.end()
	}()
	if err := r.proveHealed(ctx); err != nil {
		return err
	}
	r.addMoves()
	if err := r.addRotation(ctx); err != nil {
		return err
	}
	r.addMismatches(ctx)
	if r.s.OnlyChanges() {
		if err := r.addRelayLists(ctx); err != nil {
			return err
		}
	}
	r.weir().streams = append(r.weir().streams, r.offline.streams...) // to be judged as all others are
	if err := r.truth().catchUp(ctx, r.admin); err != nil {
		return err
	}
	return r.until(ctx, settlePatience, func() (bool, string) {
		a, b := r.behind(r.way(report.WayReference)), r.behind(r.weir())
		return a == 0 && b == 0, fmt.Sprintf("waiting for delivery: clients behind: reference %d, weir %d, stock %d", a, b,
			r.behind(r.way(report.WayStock)))
	})
}

// catchUp gives the stock way time to deliver what its link holds back.
func (r *run) catchUp(ctx context.Context) error {
	w := r.way(report.WayStock)
	err := r.until(ctx, stockPatience, func() (bool, string) {
		n := r.behind(w)
		return n == 0, fmt.Sprintf("the stock way catches up over its saturated link: %d clients behind", n)
	})
	if err == nil {
		err = r.kubectl(ctx, w)
	}
	w.bytes, w.ended = r.bytesTable(w), time.Now()
	r.metrics["stock_catch_up_seconds"] = w.ended.Sub(r.weir().ended).Seconds()
	return err
}

// until waits for a condition. While a fault has the apiserver, time is ignored.
func (r *run) until(ctx context.Context, patience time.Duration, ok func() (bool, string)) error {
	for {
		before := r.reach.gone()
		err := Until(ctx, tick, patience, r.Progress, ok)
		if patience = r.reach.gone() - before; err == nil || patience <= 0 || ctx.Err() != nil {
			return err
		}
	}
}

// kubectl runs the real one on every node of a way, two at a time, and compares what it shows with the cloud.
func (r *run) kubectl(ctx context.Context, w *way) error {
	if len(r.s.Tools()) == 0 {
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for i, node := range w.nodes {
		g.Go(func() error {
			r.Progress(fmt.Sprintf("kubectl on %s (%d of %d)", node, i+1, len(w.nodes)))
			return r.kubectlOn(ctx, w, node)
		})
	}
	return g.Wait()
}
