package eviction

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/frames"
	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
	"github.com/weir-edge/weir/sim/timeline"
	"github.com/weir-edge/weir/sim/workload"
)

// Patience of a column.
const (
	readyPatience = 3 * time.Minute // until nodes and pods are Ready
	fillPatience  = 5 * time.Minute // until hubs have all of a large workload over a thin link
	lookEvery     = 250 * time.Millisecond
	sampled       = 100 * time.Millisecond // of the bytes on the link
	maxFailures   = 20                     // calls that failed and are told one by one
)

// heartbeatClass is the class of traffic that a hub's and a leader's heartbeats have.
const heartbeatClass = runtime.ClassHeartbeat

// column is one of the two runs of a scenario.
type column struct {
	runner.Column

	s     *scenario.Scenario
	about *scenario.Eviction
	mode  runtime.Mode
	joins string // the node that joins later; "": none does
	admin kubernetes.Interface

	quiet    Span // before the first fault
	updates  Span // after it, while pods are replaced
	joining  Span // first minute of the node that joins
	writing  sync.Mutex
	callers  []*tally
	recorder *recorder
	work     *workload.Workload // nil: there is none
	stop     []func()           // wait for what ended with the context, last first

	mu       sync.Mutex // guards what follows
	history  History
	failures int

	// Bytes per second of class heartbeat: before anything is cut, and while heartbeats are delegated.
	direct, delegated float64
	reads, kept       float64 // what hubs did without the cloud, since the first fault
	// Bytes per second of each node before anything is cut: from the cloud, and both ways.
	received, quietly float64
	connected         float64 // connections of each node to the cloud, when that ends
	updated           float64 // bytes of all nodes while pods are replaced, both ways
	joined            float64 // bytes of the node that joins, both ways
	causes            []report.Cause
	replacing         []report.Cause
	said              float64 // bytes that hubs say to have saved, from the begin of quiet to the end of updates
	shared            float64 // bytes of the same time of what a pool may share
	heaviest          int64   // bytes of memory (RssAnon) of the largest hub, after the updates
}

// run brings up the column's site and runs it to its end.
func (c *column) run(ctx context.Context) (err error) {
	c.Progress(fmt.Sprintf("%s column: %d nodes, and %d beside", c.Way, c.s.Topology.Pool.Nodes,
		c.s.Topology.Beside.Nodes))
	if err = c.Up(ctx, layout.Eviction(c.s, c.about, c.mode)); err != nil {
		return err
	}
	asked := ctx // ends only when somebody asks for it
	defer func() {
		if e, ok := c.Site.(runtime.Evidence); ok && err != nil && asked.Err() == nil {
			err = errors.Join(err, e.SaveEvidence(context.WithoutCancel(ctx)))
		}
		err = errors.Join(err, c.Down(ctx))
	}()
	if c.admin, err = workload.NewClient(c.Site.Admin()); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	defer func() {
		cancel(nil)
		background.Wait()
		for _, wait := range slices.Backward(c.stop) {
			wait()
		}
	}()
	background.Go(func() { c.keepControllers(ctx) })
	for _, step := range []struct {
		phase string
		do    func(context.Context) error
	}{{"start", c.start}, {"fill", c.fill}, {"quiet", c.beQuiet}, {"rollout", c.rollOut}, {"join", c.join},
		{"faults", c.faults}} {
		c.Phase(step.phase)
		if err := step.do(ctx); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return fmt.Errorf("%s column, %s: %w", c.Way, step.phase, err)
		}
	}
	return nil
}

// start starts everything and waits until all nodes are Ready.
func (c *column) start(ctx context.Context) error {
	first, kubelets := c.parts(false)
	if c.mode == runtime.Weir {
		if err := c.SetPolicy(ctx, c.about.Policy); err != nil {
			return err
		}
	}
	if err := runtime.Start(ctx, c.Site, first...); err != nil {
		return err
	}
	if err := runtime.Start(ctx, c.Site, kubelets...); err != nil {
		return err
	}
	err := c.nodesReady(ctx, len(c.history.Nodes))
	if err != nil || c.mode != runtime.Weir {
		return err
	}
	_, err = c.leader(ctx)
	return err
}

// nodesReady waits until so many nodes of the pool are Ready, and those beside.
func (c *column) nodesReady(ctx context.Context, nodes int) error {
	nodes += c.s.Topology.Beside.Nodes
	return c.Until(ctx, readyPatience, func() (bool, string) {
		n := c.readyNodes(ctx)
		return n == nodes, fmt.Sprintf("waiting for nodes to be Ready: %d of %d are", n, nodes)
	})
}

// readyNodes counts those that are Ready and on which pods may run.
func (c *column) readyNodes(ctx context.Context) (n int) {
	list, err := c.admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0
	}
	for _, x := range list.Items {
		if nodeReady(&x) && !slices.ContainsFunc(x.Spec.Taints, func(t corev1.Taint) bool { return t.Effect != "" }) {
			n++
		}
	}
	return n
}

// fill deploys the pods, and writes the workload if there is one.
func (c *column) fill(ctx context.Context) error {
	if w := c.s.Workload; w.Services > 0 {
		work := workload.New(workload.Config{
			Seed: c.s.Seed, Services: w.Services, Endpoints: w.Endpoints, Nodes: c.history.Nodes,
		})
		if err := work.Fill(ctx, c.admin, func(int, int) {}); err != nil {
			return err
		}
		c.work = work
	}
	perNode := c.about.PodsPerNode
	if err := deploy(ctx, c.admin, c.Pool, perNode*len(c.history.Nodes)); err != nil {
		return err
	}
	if err := c.Until(ctx, readyPatience, func() (bool, string) {
		on, err := running(ctx, c.admin)
		bare := slices.DeleteFunc(slices.Clone(c.history.Nodes), func(n string) bool { return on[n] == perNode })
		return err == nil && len(bare) == 0,
			fmt.Sprintf("waiting for %d pods to be Ready on each of %s", perNode, strings.Join(bare, ", "))
	}); err != nil {
		return err
	}
	if err := c.startComponents(ctx); err != nil {
		return err
	}
	if err := c.Until(ctx, fillPatience, func() (bool, string) { return c.synced(ctx) }); err != nil {
		return err
	}
	return c.idle(ctx, time.Now().Add(c.about.Settle), "nothing happens for")
}

// synced reports whether all caches of Weir are there.
func (c *column) synced(ctx context.Context) (bool, string) {
	for _, id := range c.Site.Parts() {
		if id.Kind() != "hub" && id.Kind() != "coordinator" || c.joins != "" && id.Of() == c.joins {
			continue
		}
		p, err := c.Site.Part(id)
		if err != nil {
			return false, err.Error()
		}
		var s partStatus
		err = p.Status(ctx, &s)
		unread := id.Kind() == "coordinator" && len(c.history.Nodes) == 1 // by any hub but the one that it reads
		if err != nil || len(s.Resources) == 0 && !unread {
			return false, fmt.Sprintf("waiting for %s", id)
		}
		for _, res := range s.Resources {
			if !res.Synced {
				return false, fmt.Sprintf("waiting for %s of %s", res.Resource, id)
			}
		}
	}
	return true, ""
}

// beQuiet measures heartbeats before anything is cut.
func (c *column) beQuiet(ctx context.Context) error {
	rec := newRecorder(c.history.Nodes)
	wait, err := rec.start(ctx, c.admin)
	if err != nil {
		return err
	}
	c.stop = append(c.stop, wait)
	c.recorder = rec
	if err := c.startCallers(ctx); err != nil {
		return err
	}
	lasts := max(c.history.Timers.Lease*3/2, c.s.Workload.Quiet)
	c.quiet.From = time.Now()
	c.said = -c.saved(ctx)
	defer func() { c.quiet.To = time.Now() }()
	return c.idle(ctx, time.Now().Add(lasts), "nothing happens for")
}

// idle waits for a time. what lasts so long, as in "nothing happens for".
func (c *column) idle(ctx context.Context, until time.Time, what string) error {
	return c.Until(ctx, max(time.Until(until), 0)+readyPatience, func() (bool, string) {
		left := time.Until(until)
		return left <= 0, fmt.Sprintf("%s another %v", what, left.Round(time.Second))
	})
}

func (c *column) startCallers(ctx context.Context) error {
	if !c.about.Calls {
		return nil
	}
	if real, ok := c.Site.(runtime.Callers); ok {
		return c.startRealCallers(ctx, real)
	}
	for _, node := range c.history.Nodes {
		e, err := c.Site.Endpoint(node, runtime.ClassPool)
		if err != nil {
			return err
		}
		token, err := c.Site.Token(ctx, "kube-proxy")
		if err != nil {
			return err
		}
		x, wait, err := newCaller(ctx, e.RESTConfig(token), node, c.history.Nodes, c.callFailed)
		if wait != nil {
			c.stop = append(c.stop, wait)
		}
		if err != nil {
			return err
		}
		c.callers = append(c.callers, &x.tally)
		var running sync.WaitGroup
		running.Go(func() { x.run(ctx) })
		c.stop = append(c.stop, running.Wait)
	}
	return nil
}

// startRealCallers has the nodes themselves call the Service. A node's calls count from the first that goes well:
// before, its kube-proxy does not know the Service.
func (c *column) startRealCallers(ctx context.Context, site runtime.Callers) error {
	service, err := c.admin.CoreV1().Services(corev1.NamespaceDefault).Get(ctx, appName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, node := range c.history.Nodes {
		x := &tally{}
		c.callers = append(c.callers, x)
		told := func(err error) {
			if calls, _ := x.count(); calls == 0 && err != nil {
				return
			}
			x.add(err)
			if err != nil {
				c.callFailed(node, err)
			}
		}
		var running sync.WaitGroup
		running.Go(func() {
			if err := site.Call(ctx, node, "http://"+service.Spec.ClusterIP, callEvery, callPatience, told); err != nil {
				told(err)
				c.Note(fmt.Sprintf("nobody calls from %s any more: %v", node, err))
			}
		})
		c.stop = append(c.stop, running.Wait)
	}
	return c.Until(ctx, readyPatience, func() (bool, string) {
		n := 0
		for _, x := range c.callers {
			if calls, _ := x.count(); calls > 0 {
				n++
			}
		}
		return n == len(c.callers), fmt.Sprintf("waiting for calls: %d of %d nodes reach the Service", n, len(c.callers))
	})
}

func (c *column) callFailed(node string, err error) {
	c.mu.Lock()
	c.failures++
	n := c.failures
	c.mu.Unlock()
	if n <= maxFailures {
		c.Time.Emit(timeline.Event{
			Lane: timeline.Client, Way: c.Way, Node: node, Name: "call failed", Strings: map[string]string{"err": err.Error()},
		})
	}
}

// faults lets the faults happen, and the changes beside them, and watches until the column is over.
func (c *column) faults(ctx context.Context) error {
	before := c.alone(ctx)
	c.history.Began = time.Now()
	first := slices.MinFunc(c.s.Faults, func(a, b scenario.Fault) int { return int(a.At - b.At) }).At
	watch, cancel := context.WithTimeout(ctx, first+c.about.Watch)
	defer cancel()
	var changes sync.WaitGroup
	changes.Go(func() { c.change(watch) })
	defer changes.Wait()
	ended := make(chan error, 1)
	go func() { ended <- c.injectAll(watch) }()
	if err := c.Until(ctx, first+c.about.Watch+readyPatience, func() (bool, string) {
		left := time.Until(c.history.Began.Add(first + c.about.Watch))
		return watch.Err() != nil, fmt.Sprintf("watching for another %v: %s", left.Round(time.Second), c.glance())
	}); err != nil {
		cancel()
		return errors.Join(err, <-ended)
	}
	if err := <-ended; err != nil {
		return err
	}
	after := c.alone(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads, c.kept = after.since(before)
	c.history.Ended = time.Now()
	c.recorder.into(&c.history)
	c.Measure()
	traffic := c.Site.Link(c.Pool).Series(sampled)
	c.quiet.To = c.quiet.To.Add(-sampled) // what happens next begins in the last sample
	c.direct, c.delegated = perSecond(traffic, c.quiet, heartbeats), perSecond(traffic, c.history.delegation(), heartbeats)
	nodes := float64(len(c.history.Nodes))
	c.received = perSecond(traffic, c.quiet, fromCloud) / nodes
	c.quietly, c.updated = perSecond(traffic, c.quiet, anything)/nodes, bytesIn(traffic, c.updates, anything)
	c.connected = float64(len(slices.DeleteFunc(c.Site.Link(c.Pool).Connections(), func(x link.Connection) bool {
		return x.Opened.After(c.quiet.To) || !x.Closed.IsZero() && x.Closed.Before(c.quiet.To)
	}))) / nodes
	c.shared = bytesIn(traffic, Span{c.quiet.From, c.updates.To}, forPool)
	c.joined = bytesIn(traffic, c.joining, func(x link.Sample) bool { return x.Node == c.joins })
	return c.readCauses()
}

// readCauses tells which requests of the pool's nodes cost what crossed before anything was cut: of one node while
// nothing happened, and of all while pods were replaced.
func (c *column) readCauses() (err error) {
	if !c.about.Components {
		return nil
	}
	if c.mode != runtime.Weir {
		whole, err := c.causesIn(Span{c.quiet.From, c.updates.To}, 1, 1, 0)
		if err != nil {
			return err
		}
		c.shared = ofAllNodes(whole)
	}
	nodes, lasted := float64(len(c.history.Nodes)), c.quiet.To.Sub(c.quiet.From)
	if c.causes, err = c.causesIn(c.quiet, 1/lasted.Hours()/nodes, 1/lasted.Seconds()/nodes, c.quietly); err != nil {
		return err
	}
	if c.about.Rollouts > 0 {
		c.replacing, err = c.causesIn(c.updates, 1, 1, c.updated)
	}
	return err
}

// causesIn tells what was asked in a time. perRequest and perByte are what one counts for; all is what crossed.
func (c *column) causesIn(span Span, perRequest, perByte, all float64) (causes []report.Cause, err error) {
	server, err := c.Site.Part(runtime.APIServer)
	if err != nil {
		return nil, err
	}
	log, err := os.Open(server.LogFile())
	if err != nil {
		return nil, fmt.Errorf("causes of bytes: %w", err)
	}
	defer log.Close()
	of := frames.Of{
		Agents: []string{"hollow-kubelet", "kubelet", "weir-hub"}, Without: []string{c.s.Topology.Beside.Name + "-"},
	}
	for _, x := range components {
		of.Agents = append(of.Agents, x.identity)
	}
	read, err := frames.Read(log, span.From, span.To, of)
	if err != nil {
		return nil, err
	}
	for _, x := range read {
		cause := report.Cause{
			Way: c.Way, What: x.What, Requests: float64(x.Requests) * perRequest, Bytes: float64(x.Up+x.Down) * perByte,
		}
		all -= cause.Bytes
		causes = append(causes, cause)
	}
	if len(causes) > 0 {
		opened := 0
		for _, x := range c.Site.Link(c.Pool).Connections() {
			if !x.Opened.Before(span.From) && x.Opened.Before(span.To) {
				opened++
			}
		}
		causes = append(causes, report.Cause{
			Way: c.Way, What: "TLS", Requests: float64(opened) * perRequest, Bytes: all,
		})
	}
	return causes, nil
}

// glance is what a person wants to see while a column goes on.
func (c *column) glance() string {
	h := History{}
	c.recorder.into(&h)
	evicted, notReady := 0, 0
	for _, p := range h.Pods {
		if p.Deleted.After(c.history.Began) {
			evicted++
		}
	}
	for _, flips := range h.Ready {
		if n := len(flips); n > 0 && !flips[n-1].Ready {
			notReady++
		}
	}
	return fmt.Sprintf("%d nodes not Ready, %d pods evicted", notReady, evicted)
}

// change makes the workload's changes while the cloud can be written to.
func (c *column) change(ctx context.Context) {
	w := c.s.Workload
	for i := range w.Changes {
		if !runner.Slept(ctx,
			time.Until(c.history.Began.Add(time.Duration(float64(i)/w.ChangesPerSecond*float64(time.Second))))) {
			return
		}
		c.writing.Lock()
		err := c.work.Churn(ctx, c.admin, 1, w.ChangesPerSecond, nil, nil)
		c.writing.Unlock()
		if err != nil && ctx.Err() == nil {
			c.Note("a change failed: " + err.Error())
			return
		}
	}
}

func heartbeats(x link.Sample) bool { return x.Class == heartbeatClass }

func fromCloud(x link.Sample) bool { return x.Dir == link.Down }

func anything(link.Sample) bool { return true }

// bytesIn is how many bytes of some of the traffic crossed in a span.
func bytesIn(all []link.Sample, s Span, of func(link.Sample) bool) float64 {
	var sum int64
	for _, x := range all {
		if of(x) && !x.At.Before(s.From) && x.At.Before(s.To) {
			sum += x.Bytes
		}
	}
	return float64(sum)
}

// perSecond is the same in a second of it.
func perSecond(all []link.Sample, s Span, of func(link.Sample) bool) float64 {
	return bytesIn(all, s, of) / max(s.To.Sub(s.From).Seconds(), 1)
}
