package card

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/runtime"
)

// Config says what is measured, and how often.
type Config struct {
	Base, Head parts.Binaries // weir-hub and weir-coordinator of both sides
	Starts     int            // with empty disks; 3 by default
	Changes    int            // of objects; 60 by default
	Kills      int            // of leaders; 10 by default
	Graces     int            // losses of the coordinator; 2 by default
	Batches    int            // of gets in a round; 12 by default, and change.LeastSamples at the least
	LogDir     string
	Repeat     string // the command that measures again, for the figures
	Progress   func(string)
}

func (c Config) withDefaults() Config {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.Starts, 3)
	set(&c.Changes, 60)
	set(&c.Kills, 10)
	set(&c.Graces, 2)
	set(&c.Batches, 12)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	return c
}

// The pools have names of one length: their bytes must not differ by them.
const (
	poolBase = "pool-base"
	poolTwin = "pool-twin" // the base again
	poolHead = "pool-head"

	nodes     = 3
	services  = 30
	endpoints = 40
	namespace = "card"
	patience  = 2 * time.Minute
	gets      = 100 // of a batch, from each pool
	passed    = 30  // gets of a batch that go through to the cloud
	rounds    = change.LeastRounds
	beats     = 40
)

// side is one pool.
type side struct {
	name  string
	doors []nodeDoor           // of its nodes
	kube  kubernetes.Interface // its first node's kubelet, through the hub
	coord runtime.Part
	hubs  []runtime.PartID
	nodes []string
}

// nodeDoor is where clients of a node ask its hub.
type nodeDoor struct {
	node, url string
	client    *http.Client
}

// bench is a measurement under way.
type bench struct {
	Config

	site  runtime.Site
	cloud *cloud.Cloud
	admin kubernetes.Interface
	sides [3]*side // base, twin, head
	book  *book
	next  int // change
}

// Measure brings up a cloud and three pools and measures.
func Measure(ctx context.Context, c Config) (figures []change.Figure, err error) {
	c = c.withDefaults()
	if c.Batches < change.LeastSamples {
		return nil, fmt.Errorf("batches of a round: %d, want %d at the least", c.Batches, change.LeastSamples)
	}
	b := &bench{Config: c, book: newBook(c.Repeat)}
	dir, err := os.MkdirTemp("", "weir-twin-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	twin, err := copied(c.Base, dir)
	if err != nil {
		return nil, err
	}
	var pools []runtime.Pool
	for i, name := range []string{poolBase, poolTwin, poolHead} {
		p := runtime.Pool{
			Name: name, Nodes: nodes, Mode: runtime.Weir, LAN: &runtime.Link{RTT: time.Millisecond},
			Binaries: []parts.Binaries{c.Base, twin, c.Head}[i],
			HubFlags: parts.Flags{"caller-rate": 100_000}, // one caller asks as fast as it is answered
		}
		pools = append(pools, p)
		b.sides[i] = &side{name: name, nodes: p.NodeNames()}
	}
	local := &runtime.Local{LogDir: c.LogDir, Binaries: c.Head}
	if b.site, err = local.Up(ctx, runtime.Topology{Pools: pools}, c.Progress); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.site.Down(context.WithoutCancel(ctx))) }()
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"start", b.start}, {"memory", b.memory}, {"changes", b.changes}, {"heartbeat", b.heartbeats}, {"get", b.gets},
		{"leader change", b.kills}, {"grace", b.grace},
	} {
		c.Progress("card: " + step.name)
		if err := step.run(ctx); err != nil {
			return b.book.figures(), fmt.Errorf("measure %s: %w", step.name, err)
		}
	}
	return b.book.figures(), nil
}

// copied are the same commands in files of their own. Two sides that ran one file would have its code in the same pages
// of memory, so the processor's caches would have it ready for two of them: gets of the third, the head, took 5 %
// longer for nothing.
func copied(of parts.Binaries, dir string) (parts.Binaries, error) {
	twin := parts.Binaries{}
	for name, path := range of {
		code, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		twin[name] = filepath.Join(dir, name)
		if err := os.WriteFile(twin[name], code, 0o755); err != nil { //nolint:gosec // it is run
			return nil, err
		}
	}
	return twin, nil
}

// hasCloud is what the local runtime's sites have: whoever measures signs as the cloud's authority.
type hasCloud interface{ Cloud() *cloud.Cloud }

func (b *bench) prepare(ctx context.Context) (err error) {
	of, ok := b.site.(hasCloud)
	if !ok {
		return errors.New("the runtime shows no cloud")
	}
	b.cloud = of.Cloud()
	if b.admin, err = kubernetes.NewForConfig(b.site.Admin()); err != nil {
		return err
	}
	for _, s := range b.sides {
		if s.coord, err = b.site.Part(runtime.CoordinatorOf(s.name)); err != nil {
			return err
		}
		for _, n := range s.nodes {
			s.hubs = append(s.hubs, runtime.HubOf(n))
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := b.admin.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range services {
		if _, err := b.admin.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice(i, 0), metav1.CreateOptions{}); err !=
			nil {
			return err
		}
	}
	return nil
}

// slice is an EndpointSlice as the real controller writes it.
func slice(i, round int) *discoveryv1.EndpointSlice {
	port, name, proto := int32(8080), "http", corev1.ProtocolTCP
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: sliceName(i),
			Labels: map[string]string{
				discoveryv1.LabelServiceName: fmt.Sprintf("service-%04d", i),
				discoveryv1.LabelManagedBy:   "endpointslice-controller.k8s.io",
			},
			Annotations: map[string]string{"card.weir.dev/round": fmt.Sprintf("%06d", round)},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &proto}},
	}
	for k := range endpoints {
		node, zone, ready := fmt.Sprintf("edge-node-%02d", k%20), "zone-a", k != round%endpoints
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.%d.%d.%d", i/250, i%250, k)},
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready},
			NodeName:   &node, Zone: &zone,
			TargetRef: &corev1.ObjectReference{
				Kind: "Pod", Namespace: namespace, Name: fmt.Sprintf("service-%04d-7d9f8b6c5-%05d", i, k),
			},
		})
	}
	return s
}

func sliceName(i int) string { return fmt.Sprintf("service-%04d-abcde", i) }

// crossed adds up the bytes of a class, both ways; empty: of all.
func crossed(l *link.Pool, class, node string) float64 {
	return float64(link.Sum(l.Counters(), func(c link.Counter) bool {
		return (class == "" || c.Class == class) && (node == "" || c.Node == node)
	}))
}

// connections counts those of class pool that were opened since.
func connections(l *link.Pool, since time.Time) (n float64) {
	for _, c := range l.Connections() {
		if c.Class == runtime.ClassPool && c.Opened.After(since) {
			n++
		}
	}
	return n
}

// auditLog is where kube-apiserver notes what hubs ask.
func (b *bench) auditLog() (*os.File, error) { return os.Open(b.cloud.AuditLog()) }
