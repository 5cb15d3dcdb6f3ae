package runtime

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/testca"
)

// Progress is told what happens, in words for a person, every few seconds at the least. It may be called by several
// goroutines.
type Progress func(message string)

// Runtime makes sites.
type Runtime interface {
	// Name is what a scenario calls the runtime: "local", "kind".
	Name() string
	// Up brings up the cloud, the links and the nodes of a topology, and prepares the parts of Weir without starting
	// them: when they start is part of a scenario. The caller ends the site by Down. When Up fails or its context ends,
	// it has cleaned up after itself.
	Up(ctx context.Context, t Topology, progress Progress) (Site, error)
}

// Limited is a Runtime that cannot do all that scenarios ask for.
type Limited interface {
	// Lacks tells why nothing can be done to parts of a kind, as PartID.Kind has it, or to HollowNodes; "": everything
	// can.
	Lacks(kind string) string
	// Unjudged are metrics of a run that say nothing of Weir there, and why. They are reported and not judged.
	Unjudged() map[string]string
}

// Evidence is a Site that can save more than the logs of its parts when a run fails, while it is still up.
type Evidence interface {
	SaveEvidence(ctx context.Context) error
}

// Site is a topology that runs. Its methods may be called by many goroutines.
type Site interface {
	// Admin is the cloud's administrator, over no link. It is for the testbed: workload, readiness, the truth to
	// compare with.
	Admin() *rest.Config
	// Token returns a fresh bearer token of an identity of the workload: "kube-proxy", "coredns", "json-client",
	// "kubectl".
	Token(ctx context.Context, identity string) (string, error)
	// Tool returns the path of a command-line tool of the cloud's version that the topology asked for: "kubectl".
	Tool(name string) (string, error)

	// Endpoint is where a client on a node finds the Kubernetes API. In a pool with Weir that is the node's hub,
	// whatever the class. In a stock pool it is the cloud through the pool's link, where the client's bytes are counted
	// under the class.
	Endpoint(node, class string) (Endpoint, error)
	// Link is the uplink of a pool: rates, cuts, phases and byte counters.
	Link(pool string) *link.Pool
	// LAN is the network between the hubs of a pool and its coordinator, nil if the topology has none: then they talk
	// directly.
	LAN(pool string) *link.Pool

	// Parts lists what can be started, stopped and measured; which kinds there are depends on the runtime too, see
	// Limited.
	Parts() []PartID
	// Part returns one of them.
	Part(id PartID) (Part, error)

	// Down ends everything. Parts that run are stopped first; those that had to be killed are errors.
	Down(ctx context.Context) error
}

// Part is a process that a scenario can do things to.
type Part interface {
	Name() string
	// Start starts it and waits until it is healthy. A part that has ended can be started again.
	Start(ctx context.Context) error
	// Stop asks it to end and waits.
	Stop(ctx context.Context) error
	// Kill ends it without a warning.
	Kill() error
	// Freeze lets it stand still with all its connections open, and Thaw go on.
	Freeze() error
	Thaw() error
	// LoseDisk takes from a part that does not run all that it kept, as a new disk would.
	LoseDisk() error
	// Running reports whether it runs, frozen or not; Done is closed when it has ended, and Err tells how.
	Running() bool
	Done() <-chan struct{}
	Err() error
	// Usage is the memory and CPU that it uses now.
	Usage() (proc.Usage, error)
	// Status reads its JSON status into v.
	Status(ctx context.Context, v any) error
	// Metrics reads its metrics.
	Metrics(ctx context.Context) (parts.Metrics, error)
	// LogFile is where it logs.
	LogFile() string
}

// Unready is a Part that can be made to say that it is not ready, while it serves everything.
type Unready interface {
	// SetReady returns when the part says so.
	SetReady(ctx context.Context, ready bool) error
}

// Restorable is a Part whose data can be put back to an earlier time.
type Restorable interface {
	Part
	// Backup copies its data while it runs.
	Backup(ctx context.Context) error
	// Restore puts the last backup in the place of the data. The part must not run. It returns the resourceVersion that
	// the cloud is at.
	Restore(ctx context.Context) (revision uint64, err error)
}

// HollowNodes is what a Limited runtime lacks whose nodes are not hollow.
const HollowNodes = "hollow-nodes"

// Moves is what a Limited runtime lacks whose hubs keep the flags that they began with.
const Moves = "moves"

// Movable is a Site whose nodes can go to another pool.
type Movable interface {
	// Move writes the flags of another pool for the hub of a node. They count when it starts next.
	Move(node, pool string) error
}

// Gated is a Site whose uplinks lead to a weir-gate, too.
type Gated interface {
	// GateAddress is where the connections to it end, as link.Connection has it; "": there is none.
	GateAddress() string
}

// Machines is a Site whose nodes can be hollow: the containers of their pods are entries in a table.
type Machines interface {
	// Machine is what the testbed knows of a hollow node.
	Machine(node string) (Machine, error)
}

// Callers is a Site whose nodes reach Services as those of an installation do, through kube-proxy.
type Callers interface {
	// Call calls a URL from a node, again and again, until ctx ends, and tells how each call went. It returns when the
	// last was told.
	Call(ctx context.Context, node, url string, every, patience time.Duration, told func(error)) error
}

// Machine is a hollow node.
type Machine struct {
	Containers string       // URL where its containers are looked at and ended
	Kubelet    *rest.Config // how its kubelet reaches the API server, and its certificate
	HubData    string       // folder of what its hub keeps; empty: it has none
	Proxy      string       // URL where its kube-proxy says what a Service leads to; empty: it has none
	Corefile   string       // what CoreDNS reads there, as an argument of its container
}

// Pulls is a Site whose nodes pull images.
type Pulls interface {
	// Pulled is what one pull of an image brings to a machine, in bytes.
	Pulled(image string) (int64, error)
	// Pull has the containerd of a node pull an image, and returns when it has. It does not ask again.
	Pull(ctx context.Context, node, image string) error
}

// Boots has the hub of the machine find out that it was started.
func (m Machine) Boots() error {
	if m.HubData == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(filepath.Dir(m.HubData), "boot-id"), []byte(rand.Text()), 0o600)
}

// Fillable is a Part whose disk can be full.
type Fillable interface {
	Part
	// FillDisk lets it write no file any more until FreeDisk, or until it is started again.
	FillDisk() error
	FreeDisk() error
}

// Issuer is a Site that issues again what has an end. A life below zero has ended.
type Issuer interface {
	// Certify puts certificates of another life where the hub and the kubelet of a hollow node have theirs; a hub looks
	// for it now and then, a kubelet when it starts. The configuration is the kubelet's.
	Certify(node string, life time.Duration) (*rest.Config, error)
	// Stray is that configuration with a certificate that nobody else has.
	Stray(node string, life time.Duration) (*rest.Config, error)
	// Retime is a service account's token with another end.
	Retime(token string, end time.Time) (string, error)
}

// Signer is a Site whose cloud signs certificates of programs that are not the testbed's.
type Signer interface {
	Sign(r testca.Request) (*testca.Pair, error)
}

// Endpoint is an API server to connect to.
type Endpoint struct {
	URL string
	// CAPEM is who signed its certificate; of a hub whose node has an authority of its own, CAFile is where the hub shows
	// that.
	CAPEM  []byte
	CAFile string
}

// Trust is how a client verifies it.
func (e Endpoint) Trust() rest.TLSClientConfig {
	return rest.TLSClientConfig{CAData: e.CAPEM, CAFile: e.CAFile}
}

// RESTConfig is a client's configuration for the endpoint.
func (e Endpoint) RESTConfig(token string) *rest.Config {
	return &rest.Config{
		Host:            e.URL,
		BearerToken:     token,
		TLSClientConfig: e.Trust(),
		QPS:             -1,
		WarningHandler:  rest.NoWarnings{},
	}
}

// PartID names a part as scenarios do: "apiserver", "controller-manager", "scheduler", "hub/<node>", "kubelet/<node>",
// "containers/<node>", "containerd/<node>", "proxy/<node>", "coordinator/<pool>", and if a pool has three of
// those, "coordinator/<pool>/<number>".
type PartID string

// Parts of the cloud.
const (
	APIServer         PartID = "apiserver"
	ControllerManager PartID = "controller-manager"
	Scheduler         PartID = "scheduler"
	Manager           PartID = "manager"  // weir-manager
	Gate              PartID = "gate"     // weir-gate
	Registry          PartID = "registry" // of images
)

// HubOf names the hub of a node.
func HubOf(node string) PartID { return PartID("hub/" + node) }

// KubeletOf names the kubelet of a node.
func KubeletOf(node string) PartID { return PartID("kubelet/" + node) }

// ContainersOf names the container runtime of a node, whose containers outlive its kubelet.
func ContainersOf(node string) PartID { return PartID("containers/" + node) }

// ContainerdOf names the containerd of a node that pulls images.
func ContainerdOf(node string) PartID { return PartID("containerd/" + node) }

// ProxyOf names the kube-proxy of a hollow node.
func ProxyOf(node string) PartID { return PartID("proxy/" + node) }

// CoordinatorOf names the coordinator of a pool that has one.
func CoordinatorOf(pool string) PartID { return PartID("coordinator/" + pool) }

// ReplicaOf names one of three coordinators of a pool, 1 to 3.
func ReplicaOf(pool string, number int) PartID {
	return PartID("coordinator/" + pool + "/" + strconv.Itoa(number))
}

// Kind is the part of the name before the first slash: "apiserver", "hub", "coordinator", "kubelet" and so on.
func (id PartID) Kind() string {
	kind, _, _ := strings.Cut(string(id), "/")
	return kind
}

// Of is the node of a hub, kubelet or container runtime, or the pool of a coordinator.
func (id PartID) Of() string {
	_, of, _ := strings.Cut(string(id), "/")
	of, _, _ = strings.Cut(of, "/")
	return of
}

// Start starts parts side by side and waits until all are healthy. Kubelets come last: one reads at its start what its
// hub writes at its own.
func Start(ctx context.Context, s Site, ids ...PartID) error {
	kubelet := func(id PartID) bool { return id.Kind() == "kubelet" }
	for _, turn := range [][]PartID{
		slices.DeleteFunc(slices.Clone(ids), kubelet),
		slices.DeleteFunc(slices.Clone(ids), func(id PartID) bool { return !kubelet(id) }),
	} {
		if err := start(ctx, s, turn); err != nil {
			return err
		}
	}
	return nil
}

func start(ctx context.Context, s Site, ids []PartID) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, id := range ids {
		part, err := s.Part(id)
		if err != nil {
			return fmt.Errorf("start %s: %w", id, err)
		}
		g.Go(func() error { return part.Start(ctx) })
	}
	return g.Wait()
}
