package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/proc"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	managerCommand = "weir-manager"
	beatEvery      = 10 * time.Second // as kubelets renew their Leases
	holdFor        = 40 * time.Second // as long as kubelets hold their Leases
	writers        = 16
	nodeImages     = 50               // that a kubelet reports, at most
	managerGrace   = 30 * time.Second // to end
	managerPoll    = 2 * time.Second  // each look at its metrics costs it CPU time, which is measured
	fewestNodes    = 100              // a tenth of them is cut off
	mostNodes      = 50_000           // each has an address below 10.20.0.0
)

// ManagerConfig says how large a cluster weir-manager is measured with.
type ManagerConfig struct {
	Nodes, Pools int
	// another weir-manager, of before a change, that is measured first in the same cluster; empty: none is.
	Before   string
	Steady   time.Duration // how long is measured while nothing but heartbeats happens
	Progress func(string)
}

func (c ManagerConfig) validate() error {
	switch {
	case c.Nodes != 0 && (c.Nodes < fewestNodes || c.Nodes > mostNodes):
		return cli.Usage("--manager-nodes", c.Nodes,
			fmt.Sprintf("%d to %d, or 0 to leave the part out", fewestNodes, mostNodes))
	case c.Pools < 1:
		return cli.Usage("--manager-pools", c.Pools, "at least 1")
	case c.Steady < time.Second:
		return cli.Usage("--manager-steady", c.Steady, "at least 1s")
	}
	if c.Before != "" {
		if f, err := os.Stat(c.Before); err != nil || f.IsDir() || f.Mode()&0o111 == 0 {
			return cli.Usage("--manager-before", c.Before, "the path of a weir-manager that can be run")
		}
	}
	return nil
}

// text is what the figures depend on.
func (c ManagerConfig) text() string {
	text := fmt.Sprintf("nodes %d, pools %d, steady %v", c.Nodes, c.Pools, c.Steady)
	if c.Before != "" {
		text += ", and a weir-manager of before"
	}
	return text
}

// managed is that benchmark under way.
type managed struct {
	ManagerConfig

	spawner   *proc.Spawner
	cloud     *cloud.Cloud
	client    kubernetes.Interface
	command   string   // path of weir-manager
	args      []string // of it
	dir       string
	process   *proc.Process
	probe     *parts.Probe
	held      []*coordinationv1.Lease // each is one writer's
	delegated atomic.Int64
	beats     atomic.Int64
	figures   []Figure
	costs     []cost // of the managers, in their order
}

// Manager brings up a control plane with Nodes and their Leases, all renewed every 10 s, and weir-manager, and measures
// what that costs: while nothing else happens, and when a tenth of the nodes is cut off at once.
func Manager(ctx context.Context, c ManagerConfig) (_ []Figure, err error) {
	m := &managed{ManagerConfig: c, held: make([]*coordinationv1.Lease, c.Nodes)}
	if m.spawner, err = proc.New(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.spawner.Close()) }()
	if err := m.start(ctx); err != nil {
		return nil, err
	}
	defer m.cloud.Close()
	g, beating := errgroup.WithContext(ctx)
	beating, stop := context.WithCancel(beating)
	for i := range writers {
		g.Go(func() error { return m.beat(beating, i) })
	}
	err = m.compare(beating)
	stop()
	return m.figures, errors.Join(err, g.Wait())
}

func (m *managed) start(ctx context.Context) error {
	binaries, err := cloud.Find(ctx, m.spawner, m.Progress, cloud.KubeAPIServer)
	if err != nil {
		return err
	}
	weir, err := parts.Find(ctx, m.spawner, nil, m.Progress, managerCommand)
	if err != nil {
		return err
	}
	dir, err := m.spawner.Scratch("manager")
	if err != nil {
		return err
	}
	if m.cloud, err = cloud.Start(ctx, cloud.Config{
		Spawner: m.spawner, Binaries: binaries, LogDir: dir, Progress: m.Progress,
	}); err != nil {
		return err
	}
	if err := m.cloud.Apply(ctx, []byte(manifests.NodePools()+"---\n"+manifests.Pools()+"---\n"+manifests.RBAC())); err !=
		nil {
		return err
	}
	config := m.cloud.RESTConfig()
	config.ContentType = runtime.ContentTypeProtobuf
	if m.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if err := m.fill(ctx); err != nil {
		return err
	}
	if err := m.describe(ctx); err != nil {
		return err
	}
	token, err := m.cloud.ClientToken(ctx, managerCommand)
	if err != nil {
		return err
	}
	kubeconfig, err := testca.Kubeconfig(m.cloud.URL(), m.cloud.CA().CertPEM(), nil, token)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(m.cloud.Addr())
	if err != nil {
		return err
	}
	address := net.JoinHostPort(host, "8080") // the cloud has an address of its own
	m.probe = parts.ManagerProbe(managerCommand, address)
	m.command, m.dir = weir[managerCommand], dir
	m.args = []string{"--kubeconfig=" + path, "--metrics-bind-address=" + address, "--health-probe-bind-address=0"}
	return nil
}

// describe makes a NodePool and a Pool of each pool, and asks for leader hubs in half of them.
func (m *managed) describe(ctx context.Context) error {
	for i := range m.Pools {
		name := fmt.Sprintf("pool-%03d", i)
		p := nodepool.NodePool{
			TypeMeta:   metav1.TypeMeta{APIVersion: nodepool.GroupVersion.String(), Kind: "NodePool"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: nodepool.Spec{
				Type: nodepool.Edge, InterConnectivity: true, EnableLeaderElection: true, LeaderReplicas: 2,
				Labels: map[string]string{"example.com/site": name},
				PoolScopeMetadata: []nodepool.Resource{
					{Version: "v1", Resource: "endpoints"}, {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
				},
			},
		}
		own := poolv1.Pool{
			TypeMeta:   metav1.TypeMeta{APIVersion: poolv1.GroupVersion.String(), Kind: "Pool"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
		}
		own.Spec.Mode = []string{poolv1.ModeCoordinator, poolv1.ModeLeaderHubs}[i%2]
		for _, o := range []any{&own, &p} {
			data, err := json.Marshal(o)
			if err != nil {
				return err
			}
			if err := m.cloud.Apply(ctx, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// one measures one weir-manager and ends it.
func (m *managed) one(ctx context.Context, path, name string) error {
	grants, err := exec.CommandContext(ctx, path, "--print-manifests").Output() // each has its own
	if err != nil {
		return fmt.Errorf("%s --print-manifests: %w", name, err)
	}
	if err := m.cloud.Apply(ctx, grants); err != nil {
		return err
	}
	m.process, err = m.spawner.Start(proc.Spec{
		Name: name, Path: path, LogFile: filepath.Join(m.dir, strings.ReplaceAll(name, " ", "-")+".log"), Args: m.args,
	})
	if err != nil {
		return err
	}
	return errors.Join(m.measure(ctx, name), m.process.Stop(context.WithoutCancel(ctx), managerGrace))
}

func (m *managed) name(i int) string { return fmt.Sprintf("node-%05d", i) }

// fill makes Nodes as large as those of kubelets, and their Leases.
func (m *managed) fill(ctx context.Context) error {
	m.Progress(fmt.Sprintf("creating %d nodes in %d pools", m.Nodes, m.Pools))
	var images []corev1.ContainerImage
	for i := range nodeImages {
		name := fmt.Sprintf("registry.example.com/team/application-%02d", i)
		images = append(images, corev1.ContainerImage{
			Names: []string{name + ":v1.2.3", name + "@sha256:" + strings.Repeat("0123456789abcdef", 4)}, SizeBytes: 1e8,
		})
	}
	g, ctx := errgroup.WithContext(ctx)
	for w := range writers {
		g.Go(func() error {
			for i := w; i < m.Nodes; i += writers {
				pool := fmt.Sprintf("pool-%03d", i%m.Pools)
				n, err := m.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
					Name: m.name(i), Labels: map[string]string{contract.NodePoolLabel: pool, corev1.LabelTopologyZone: pool},
				}}, metav1.CreateOptions{})
				if err != nil {
					return err
				}
				n.Status.Images = images
				n.Status.Addresses = []corev1.NodeAddress{
					{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.20.%d.%d", i/250, i%250+1)},
				}
				n.Status.Conditions = []corev1.NodeCondition{
					{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"},
				}
				if _, err := m.client.CoreV1().Nodes().UpdateStatus(ctx, n, metav1.UpdateOptions{}); err != nil {
					return err
				}
				if m.held[i], err = m.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Create(ctx, m.lease(i),
					metav1.CreateOptions{}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

func (m *managed) lease(i int) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: m.name(i)},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(m.name(i)), LeaseDurationSeconds: ptr.To(int32(holdFor / time.Second)),
			RenewTime: ptr.To(metav1.NowMicro()),
		},
	}
}

// beat renews every sixteenth Lease, evenly over ten seconds, or as fast as the control plane takes it.
func (m *managed) beat(ctx context.Context, from int) error {
	pause := time.Duration(float64(beatEvery) * writers / float64(m.Nodes))
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for i := from; ; i += writers {
		if i >= m.Nodes {
			i = from
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		l := m.held[i]
		l.Spec.RenewTime = ptr.To(metav1.NowMicro())
		if int64(i) < m.delegated.Load() {
			metav1.SetMetaDataAnnotation(&l.ObjectMeta, contract.DelegateHeartbeat, contract.Delegated)
		} else {
			delete(l.Annotations, contract.DelegateHeartbeat)
		}
		renewed, err := m.client.CoordinationV1().Leases(contract.NodeLeaseNamespace).Update(ctx, l, metav1.UpdateOptions{})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("renew a lease: %w", err)
		}
		m.held[i] = renewed
		m.beats.Add(1)
	}
}

// until waits until the manager's metrics say something.
func (m *managed) until(ctx context.Context, holds func(parts.Metrics) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		if v, err := m.probe.Metrics(ctx); err == nil && holds(v) {
			return nil
		}
		if err := sleep(ctx, managerPoll); err != nil {
			return errors.Join(err, errors.New("weir-manager does not get there: "+m.process.Tail(2000)))
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
