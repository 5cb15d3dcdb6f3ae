package autonomy

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/routes"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/timeline"
)

const (
	truthEvery = 500 * time.Millisecond
	maxTold    = 20 // calls that failed, and what clients were shown wrong, in the timeline
	// wrongAfter is when an address that is not the pod's is wrong, since the pod has another one.
	wrongAfter = 10 * time.Second
	// deadAfter is when a pod without power must not be ready any more: package moved waits for 30 s, and the rest is for
	// what a node said last to go through the pool, and for the news to reach all clients.
	deadAfter = 40 * time.Second
	// settledAfter is when no call may fail any more, since the last pod had its address.
	settledAfter = 5 * time.Second
)

// led is where Services lead clients of the pool, and what is so. Methods of a nil led do nothing.
type led struct {
	pods  map[string][]string // of each Service
	owner map[string]string   // Service of a pod
	truth *routes.Truth

	tokens map[string]string // of the clients of each node

	wait     sync.WaitGroup
	mu       sync.Mutex
	end      map[string]context.CancelFunc // of the clients of each node
	watchers map[string][]*routes.Watcher  // that run, by node
	all      []*routes.Watcher
	callers  []interface{ Count() (calls, failed int) }
	named    []*routes.Named // those of callers that know Services by their names
	begun    bool            // all clients showed all pods once
	dns      string          // address of the Service of CoreDNS; empty: there are no names
	failures int
	verdict  routes.Verdict
	cloud    *routes.Watcher // what it has
	versions []string        // that were wrong
}

// newLed spreads the pods of each node over Services.
func newLed(services int, nodes []string, podsPerNode int, dns map[string]string) *led {
	l := &led{
		pods: map[string][]string{}, owner: map[string]string{}, truth: routes.NewTruth(),
		tokens: map[string]string{}, end: map[string]context.CancelFunc{}, watchers: map[string][]*routes.Watcher{},
	}
	for _, node := range nodes {
		for i, pod := range podNames(node, podsPerNode) {
			service := fmt.Sprintf("service-%d", i%services+1)
			l.pods[service], l.owner[pod] = append(l.pods[service], pod), service
		}
	}
	for _, pod := range dns {
		l.pods[dnsService], l.owner[pod] = append(l.pods[dnsService], pod), dnsService
	}
	return l
}

// of is the Service of a pod.
func (l *led) of(pod string) string {
	if l == nil {
		return ""
	}
	return l.owner[pod]
}

func (l *led) create(ctx context.Context, admin kubernetes.Interface) error {
	if l == nil {
		return nil
	}
	for name := range l.pods {
		if _, err := admin.CoreV1().Services(corev1.NamespaceDefault).Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{serviceLabel: name}, Ports: servicePorts(name)},
		}, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// begin follows what the machines say, starts clients on all nodes, and waits until they show all pods.
func (l *led) begin(ctx context.Context, c *column) error {
	if l == nil {
		return nil
	}
	if c.about.Names {
		var err error
		if l.dns, err = dnsAddress(ctx, c.admin); err != nil {
			return err
		}
	}
	l.versed(ctx, c)
	for _, node := range c.nodes {
		truth, end := context.WithCancel(ctx)
		l.mu.Lock()
		l.end["truth of "+node] = end
		l.mu.Unlock()
		l.wait.Go(func() { l.follow(truth, c, node) })
		if err := l.watch(ctx, c, node); err != nil {
			return err
		}
	}
	for _, ok := range []func() (bool, string){l.settled, l.answered} {
		if err := c.Until(ctx, readyPatience, ok); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = true
	return nil
}

// versed follows which versions the cloud gives its slices.
func (l *led) versed(ctx context.Context, c *column) {
	ctx, end := context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end["versions"], l.cloud = end, routes.NewWatcher(c.admin, "the cloud", routes.Informs)
	l.wait.Go(func() {
		if err := l.cloud.Run(ctx, func() {}); err != nil {
			c.Note(err.Error())
		}
	})
}

// holdVersions judges the versions that clients were shown.
func (l *led) holdVersions(c *column, clients []routes.Client) {
	if l.cloud == nil {
		return
	}
	all, _ := l.cloud.Seen()
	l.versions = routes.Versions(all, clients)
	for _, line := range l.versions[:min(len(l.versions), maxTold)] {
		l.tell(c, "", "wrong version", line)
	}
}

// follow asks a machine for its containers until ctx ends.
func (l *led) follow(ctx context.Context, c *column, node string) {
	for {
		on, _ := containers(ctx, c.machines[node]) // none while it has no power
		for pod, x := range newest(on) {
			l.truth.Runs(pod, node, x.Address, time.Unix(0, x.StartedAt))
		}
		if !runner.Slept(ctx, truthEvery) {
			return
		}
	}
}

// newest are the containers that run, the last one of each pod: a busy kubelet may have made two sandboxes.
func newest(all []container) map[string]container {
	of := map[string]container{}
	for _, x := range all {
		if x.State == runningState && x.StartedAt > of[x.Pod].StartedAt {
			of[x.Pod] = x
		}
	}
	return of
}

// watch starts the clients of a node. One of them calls, once it has something to go by.
func (l *led) watch(ctx context.Context, c *column, node string) error {
	if l == nil {
		return nil
	}
	e, err := c.Site.Endpoint(node, runtime.ClassPool)
	if err != nil {
		return err
	}
	token := l.tokens[node] // a hub that is cut off knows no other one
	if token == "" {
		if token, err = c.Site.Token(ctx, "kube-proxy"); err != nil {
			return err
		}
		l.tokens[node] = token
	}
	config := e.RESTConfig(token)
	config.ContentType, config.UserAgent = k8sruntime.ContentTypeProtobuf, "led"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx)) // stop ends it: a fault may be over before
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end[node] = end
	for _, kind := range []string{routes.Informs, routes.Lists} {
		w := routes.NewWatcher(client, node, kind)
		l.watchers[node], l.all = append(l.watchers[node], w), append(l.all, w)
		l.wait.Go(func() {
			if err := w.Run(ctx, func() {
				if kind == routes.Informs && !c.about.Names {
					l.call(ctx, c, w, node)
				}
			}); err != nil {
				c.Note(fmt.Sprintf("%s on %s: %v", kind, node, err))
			}
		})
	}
	if c.about.Names {
		l.callNamed(ctx, c, node)
	}
	return nil
}

// failed tells of the first calls that fail.
func (l *led) failed(c *column, node string) func(error) {
	return func(err error) {
		l.mu.Lock()
		l.failures++
		n := l.failures
		l.mu.Unlock()
		if n <= maxTold {
			l.tell(c, node, "call failed", err.Error())
		}
	}
}

func (l *led) call(ctx context.Context, c *column, w *routes.Watcher, node string) {
	caller := routes.NewCaller(w, l.pods, l.failed(c, node))
	l.mu.Lock()
	l.callers = append(l.callers, caller)
	l.mu.Unlock()
	l.wait.Go(func() { caller.Run(ctx) })
}

func (*led) tell(c *column, node, what, why string) {
	c.Time.Emit(timeline.Event{
		Lane: timeline.Client, Way: c.Way, Node: node, Name: what, Strings: map[string]string{"err": why},
	})
}

// off tells that a machine lost its power, and its clients with it.
func (l *led) off(node string) {
	if l == nil {
		return
	}
	l.truth.Off(node, time.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end[node]()
	delete(l.watchers, node)
}

func (l *led) on(node string) {
	if l != nil {
		l.truth.On(node, time.Now())
	}
}

// settled reports whether all clients show all pods where they are.
func (l *led) settled() (bool, string) {
	if l == nil {
		return true, ""
	}
	now := map[string]routes.Life{}
	for _, x := range l.truth.Lives() {
		now[x.Pod] = x
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n, all := 0, 0
	for _, watchers := range l.watchers {
		for _, w := range watchers {
			n, all = n+w.Shows(now), all+len(l.owner)
		}
	}
	return n == all, fmt.Sprintf("waiting for clients to be shown all pods where they are: %d of %d are", n, all)
}

// stop ends all clients, and judges what they were shown.
func (l *led) stop(c *column) {
	if l == nil {
		return
	}
	l.mu.Lock()
	for _, end := range l.end {
		end()
	}
	l.mu.Unlock()
	l.wait.Wait()
	var clients []routes.Client
	for _, w := range l.all {
		if seen, ok := w.Seen(); ok {
			clients = append(clients, seen)
		}
	}
	l.holdVersions(c, clients)
	for _, n := range l.named {
		if seen, ok := n.Seen(); ok {
			clients = append(clients, seen)
		}
	}
	l.verdict = routes.Judge(l.truth.Lives(), clients, routes.Rules{
		Wrong: wrongAfter, Dead: deadAfter, FromPower: !c.weir, Slow: settledAfter, Settled: settledAfter,
	}, time.Now())
	for _, line := range l.verdict.Lines[:min(len(l.verdict.Lines), maxTold)] {
		l.tell(c, "", "shown wrong", line)
	}
	for _, line := range l.verdict.Slow[:min(len(l.verdict.Slow), maxTold)] {
		l.tell(c, "", "shown late", line)
	}
}

// measure makes metrics of it.
func (l *led) measure(m report.Values, weir bool) {
	calls, failed := 0, 0
	for _, x := range l.callers {
		n, f := x.Count()
		calls, failed = calls+n, failed+f
	}
	v := l.verdict
	if !weir {
		m["stock_moved_seconds_p99"], m["stock_failed_calls"] = v.P99().Seconds(), float64(failed)
		return
	}
	m["moved_seconds_p99"], m["moved_pods"] = v.P99().Seconds(), float64(len(v.Moved))
	m["wrong_routes"], m["calls_to_dead"], m["routes_back"] = float64(v.Wrong), float64(v.Dead), float64(v.Back)
	m["wrong_versions"] = float64(len(l.versions))
	m["calls"], m["failed_calls"] = float64(calls), float64(failed)
	if len(l.named) > 0 {
		m["late_failed_calls"] = float64(v.LateCalls)
	}
}
