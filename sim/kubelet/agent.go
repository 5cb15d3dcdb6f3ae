package kubelet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/weir-edge/weir/sim/proc"
)

const (
	every     = 500 * time.Millisecond // between two looks
	askTime   = 5 * time.Second        // for one request
	stopGrace = 15 * time.Second
	// userAgent is that of a kubelet: by it a hub knows for whom it keeps what.
	userAgent = "kubelet/v1.35.0 (linux/amd64) kubernetes/sim"
)

// Config of an Agent. All fields are required.
type Config struct {
	Spawner  *proc.Spawner
	Node     string
	Address  string            // IP address of the node
	API      *rest.Config      // its hub, with the kubelet's certificate; files that it names need not be there yet
	Commands map[string]string // path by image
	Root     string            // folder in the place of the node's disk
	LogDir   string
	Logger   *slog.Logger
}

// Agent runs the Pods of one node. Its methods may be called by many goroutines.
type Agent struct {
	Config
	probes *http.Client

	mu   sync.Mutex
	stop context.CancelFunc // nil: it does not run
	done chan struct{}
	runs map[types.UID]*container
}

// New prepares an agent.
func New(c Config) *Agent {
	// A kubelet does not verify whom it probes either.
	//nolint:gosec // see above
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	return &Agent{Config: c, probes: &http.Client{Transport: t}, runs: map[types.UID]*container{}}
}

// Start begins, or begins again after PowerOff.
func (a *Agent) Start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stop != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	a.stop, a.done = cancel, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		a.run(ctx)
	}(a.done)
}

// halt ends the agent, and leaves its processes.
func (a *Agent) halt() {
	a.mu.Lock()
	stop, done := a.stop, a.done
	a.stop = nil
	a.mu.Unlock()
	if stop != nil {
		stop()
		<-done
	}
}

// Freeze lets the node stand still, as one without power looks from outside: its connections say nothing any more.
func (a *Agent) Freeze() error {
	a.halt()
	var all []error
	for _, c := range a.containers() {
		if p := c.process; p.Running() {
			all = append(all, p.Freeze())
		}
	}
	return errors.Join(all...)
}

// PowerOff ends the agent and all its processes, without a warning.
func (a *Agent) PowerOff() {
	a.halt()
	for _, c := range a.containers() {
		c.process.Kill()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.runs)
}

// Close ends all in order.
func (a *Agent) Close(ctx context.Context) error {
	a.halt()
	var all []error
	for _, c := range a.containers() {
		if c.process.Running() {
			all = append(all, c.process.Stop(ctx, stopGrace))
		}
	}
	a.probes.CloseIdleConnections()
	return errors.Join(all...)
}

// Process is the one of the node's Pod of a name; nil: none runs.
func (a *Agent) Process() *proc.Process {
	for _, c := range a.containers() {
		if c.process.Running() {
			return c.process
		}
	}
	return nil
}

// LogFile is where the processes of the node log.
func (a *Agent) LogFile() string { return filepath.Join(a.LogDir, "pods-"+a.Node+".log") }

func (a *Agent) containers() (all []*container) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.runs {
		all = append(all, c)
	}
	return all
}

// run reads the Pods of the node, and runs them, until ctx ends.
func (a *Agent) run(ctx context.Context) {
	client := a.connect(ctx)
	if client == nil {
		return
	}
	pods := cache.NewStore(cache.MetaNamespaceKeyFunc)
	source := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
		fields.OneTermEqualSelector("spec.nodeName", a.Node))
	reads := cache.NewReflectorWithOptions(source, &corev1.Pod{}, pods, cache.ReflectorOptions{Name: "pods of " + a.Node})
	var reading sync.WaitGroup
	reading.Go(func() { reads.RunWithContext(ctx) })
	defer reading.Wait()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if reads.LastSyncResourceVersion() != "" { // else nothing is known, and what runs goes on
			a.sync(ctx, client, pods.List())
		}
	}
}

// connect waits until the hub has shown by which authority its certificate is known.
func (a *Agent) connect(ctx context.Context) kubernetes.Interface {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		config := rest.CopyConfig(a.API)
		config.UserAgent = userAgent
		config.WarningHandler = rest.NoWarnings{}
		client, err := kubernetes.NewForConfig(config)
		if err == nil {
			return client
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// sync takes one step towards what the Pods say.
func (a *Agent) sync(ctx context.Context, client kubernetes.Interface, objects []any) {
	there := map[types.UID]bool{}
	for _, o := range objects {
		p, ok := o.(*corev1.Pod)
		if !ok || a.Commands[p.Spec.Containers[0].Image] == "" {
			continue
		}
		there[p.UID] = true
		if err := a.step(ctx, client, p); err != nil && ctx.Err() == nil {
			a.Logger.Debug("a Pod is not as it should be yet", "node", a.Node, "pod", p.Name, "err", err)
		}
	}
	for _, c := range a.containers() {
		if !there[c.uid] { // deleted by force
			a.end(ctx, c)
		}
	}
}

// step does what a Pod asks for.
func (a *Agent) step(ctx context.Context, client kubernetes.Interface, p *corev1.Pod) error {
	a.mu.Lock()
	c := a.runs[p.UID]
	a.mu.Unlock()
	if !p.DeletionTimestamp.IsZero() {
		if c != nil {
			a.end(ctx, c)
		}
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.UID}}
		return client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, now)
	}
	if c != nil && c.image != p.Spec.Containers[0].Image {
		a.end(ctx, c)
		c = nil
	}
	if c == nil || !c.process.Running() {
		var err error
		if c, err = a.begin(p, c); err != nil {
			return err
		}
	}
	return a.tell(ctx, client, p, c)
}

// end stops a process.
func (a *Agent) end(ctx context.Context, c *container) {
	if c.process.Running() {
		_ = c.process.Stop(ctx, stopGrace)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.runs, c.uid)
}

var errNoPath = errors.New("a volume that is no directory of the host")

func failed(p *corev1.Pod, err error) error { return fmt.Errorf("pod %s: %w", p.Name, err) }
