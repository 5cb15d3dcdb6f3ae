package bench

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodepool"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	toldPool     = "told"
	toldNodes    = 200
	toldChanges  = 10
	toldPatience = 5 * time.Minute
	toldStill    = 2 * time.Second // without a byte: a change has crossed
	nodePoolPath = "/apis/apps.openyurt.io/v1beta2/nodepools"

	classNodePool = "nodepool" // of a watch of the NodePool
	classOwn      = "own"      // of a watch of leader-hub-<pool>
)

// told is that benchmark under way: a pool of many nodes, and an edge node that follows it in both ways, over one link.
type told struct {
	site     runtime.Site
	admin    kubernetes.Interface
	progress func(string)
}

// Directory measures what reaches an edge node when the status of its NodePool changes, because a node of the pool
// became ready or not: to a watch of the NodePool, and to the watch that a hub has, of leader-hub-<pool>.
func Directory(ctx context.Context, progress func(string)) (_ []Figure, err error) {
	t := &told{progress: progress}
	t.site, err = (&runtime.Local{}).Up(ctx, runtime.Topology{
		Manager: true, Pools: []runtime.Pool{{Name: wirePool, Nodes: 1, Mode: runtime.Stock, Bare: true}},
	}, progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.site.Down(context.WithoutCancel(ctx))) }()
	if t.admin, err = kubernetes.NewForConfig(t.site.Admin()); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	if err := t.fill(ctx); err != nil {
		return nil, err
	}
	all.Go(func() { t.beat(ctx) })
	if err := runtime.Start(ctx, t.site, runtime.Manager); err != nil {
		return nil, err
	}
	if err := t.until(ctx, func() (bool, string) {
		n, leaders := t.status(ctx)
		return n == toldNodes && leaders > 0, fmt.Sprintf("waiting for a status of %d nodes and a leader: %d, %d", toldNodes,
			n, leaders)
	}); err != nil {
		return nil, err
	}
	for _, watch := range []func(context.Context) error{t.watchNodePool, t.follow} {
		all.Go(func() {
			if err := watch(ctx); err != nil && ctx.Err() == nil {
				progress("a watch has ended: " + err.Error())
			}
		})
	}
	return t.measure(ctx)
}

func (t *told) until(ctx context.Context, ok func() (bool, string)) error {
	return runner.Until(ctx, certPoll, toldPatience, t.progress, ok)
}

// fill makes the pool, as an operator and kubelets would.
func (t *told) fill(ctx context.Context) error {
	c := t.site.(runtime.Vault).Cloud()
	if err := c.Apply(ctx, []byte(manifests.NodePools())); err != nil {
		return err
	}
	var nodes []cloud.Node
	for i := range toldNodes {
		nodes = append(nodes, cloud.Node{
			Name: fmt.Sprintf("%s-%d", toldPool, i+1), Pool: toldPool, Address: "10.1.0." + strconv.Itoa(i+1),
		})
	}
	if err := c.CreateNodes(ctx, nodes...); err != nil {
		return err
	}
	data, err := json.Marshal(nodepool.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: nodepool.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: toldPool},
		Spec: nodepool.Spec{
			Type: nodepool.Edge, InterConnectivity: true, EnableLeaderElection: true, LeaderReplicas: 2,
			PoolScopeMetadata: []nodepool.Resource{
				{Version: "v1", Resource: "endpoints"}, {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
			},
		},
	})
	if err != nil {
		return err
	}
	return c.Apply(ctx, data)
}

// beat lets one node be heard, so that the pool is not silent.
func (t *told) beat(ctx context.Context) {
	leases := t.admin.CoordinationV1().Leases(contract.NodeLeaseNamespace)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: toldPool + "-1"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To(toldPool + "-1"), LeaseDurationSeconds: ptr.To[int32](40),
		},
	}
	for ctx.Err() == nil {
		l.Spec.RenewTime = ptr.To(metav1.NowMicro())
		if l.ResourceVersion == "" {
			if is, err := leases.Create(ctx, l, metav1.CreateOptions{}); err == nil {
				l = is
			}
		} else if is, err := leases.Update(ctx, l, metav1.UpdateOptions{}); err == nil {
			l = is
		}
		_ = sleep(ctx, 5*time.Second)
	}
}

// status is how many nodes the NodePool's status has, and how many leaders leader-hub-<pool>.
func (t *told) status(ctx context.Context) (nodes, leaders int) {
	if p, err := t.nodePool(ctx); err == nil {
		nodes = len(p.Status.Nodes)
	}
	if e, err := t.admin.CoreV1().Endpoints(contract.ManagerNamespace).Get(ctx, contract.LeaderHubPrefix+toldPool,
		metav1.GetOptions{}); err == nil && len(e.Subsets) > 0 {
		leaders = len(e.Subsets[0].Addresses)
	}
	return nodes, leaders
}

func (t *told) nodePool(ctx context.Context) (p nodepool.NodePool, err error) {
	data, err := t.admin.CoreV1().RESTClient().Get().AbsPath(nodePoolPath + "/" + toldPool).DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	return p, err
}

// over is a connection of its own to the cloud, over the link, that is counted under a class.
func (t *told) over(class string) (http.RoundTripper, error) {
	e, err := t.site.Endpoint(wirePool+"-1", class)
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(e.URL)
	if err != nil {
		return nil, err
	}
	config, err := rest.TLSConfigFor(t.site.Admin())
	if err != nil {
		return nil, err
	}
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: config}
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context())
		req.URL.Scheme, req.URL.Host = at.Scheme, at.Host
		return tr.RoundTrip(req)
	}), nil
}

// follow reads leader-hub-<pool> as a hub does.
func (t *told) follow(ctx context.Context) error {
	by, err := t.over(classOwn)
	if err != nil {
		return err
	}
	nobody := func() []*x509.Certificate { return nil }
	told := directory.New(directory.Config{
		Pool: toldPool, Trusted: nobody, Speakers: nobody, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
	})
	told.Follow(ctx, by, clock.RealClock{})
	return nil
}

// watchNodePool reads the NodePool alone, in the encoding that custom resources have.
func (t *told) watchNodePool(ctx context.Context) error {
	by, err := t.over(classNodePool)
	if err != nil {
		return err
	}
	p, err := t.nodePool(ctx)
	if err != nil {
		return err
	}
	query := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {"3600"},
		"fieldSelector": {"metadata.name=" + toldPool}, "resourceVersion": {p.ResourceVersion},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://cloud"+nodePoolPath+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := by.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("watch of NodePools: %s", resp.Status)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (t *told) crossed(class string) float64 {
	return float64(link.Sum(t.site.Link(wirePool).Counters(), func(x link.Counter) bool { return x.Class == class }))
}

// quiet waits until nothing crosses the link any more.
func (t *told) quiet(ctx context.Context) error {
	last, since := -1.0, time.Now()
	return t.until(ctx, func() (bool, string) {
		if now := t.crossed(classNodePool) + t.crossed(classOwn); now != last {
			last, since = now, time.Now()
		}
		return last > 0 && time.Since(since) > toldStill, "waiting until nothing crosses the link"
	})
}

func (t *told) measure(ctx context.Context) ([]Figure, error) {
	if err := t.until(ctx, func() (bool, string) {
		a, b := t.crossed(classNodePool), t.crossed(classOwn)
		return a > 0 && b > 0, fmt.Sprintf("waiting for both watches: %.0f and %.0f bytes", a, b)
	}); err != nil {
		return nil, err
	}
	before, after := Figure{Unit: "B"}, Figure{Unit: "B"}
	before.Name, before.Detail = "a node of 200 gets ready or not: bytes to an edge node that watches its NodePool",
		"JSON, as custom resources are; both ways, TLS and all"
	after.Name, after.Detail = "the same to a hub, which watches leader-hub-<pool>",
		"both ways, TLS and all; the node is no leader hub"
	for i := range toldChanges {
		if err := t.quiet(ctx); err != nil {
			return nil, err
		}
		p, err := t.nodePool(ctx)
		if err != nil {
			return nil, err
		}
		a, b := t.crossed(classNodePool), t.crossed(classOwn)
		if err := t.flip(ctx, p, i); err != nil {
			return nil, err
		}
		if err := t.until(ctx, func() (bool, string) {
			now, err := t.nodePool(ctx)
			return err == nil && now.Status.ReadyNodeNum != p.Status.ReadyNodeNum, "waiting for the status of the NodePool"
		}); err != nil {
			return nil, err
		}
		if err := t.quiet(ctx); err != nil {
			return nil, err
		}
		before.Samples, after.Samples = append(before.Samples, t.crossed(classNodePool)-a),
			append(after.Samples, t.crossed(classOwn)-b)
	}
	after.Limit = AtMost(200, "a hub follows one small object, and no NodePool; what is left are pings of its connection")
	return []Figure{before, after}, nil
}

// flip makes a node that does not lead ready, or not.
func (t *told) flip(ctx context.Context, p nodepool.NodePool, i int) error {
	leads := map[string]bool{toldPool + "-1": true} // which is heard
	for _, l := range p.Status.LeaderEndpoints {
		leads[l.NodeName] = true
	}
	n := 2 + i
	for leads[fmt.Sprintf("%s-%d", toldPool, n)] {
		n += toldChanges
	}
	node, err := t.admin.CoreV1().Nodes().Get(ctx, fmt.Sprintf("%s-%d", toldPool, n), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for j := range node.Status.Conditions {
		if c := &node.Status.Conditions[j]; c.Type == corev1.NodeReady {
			c.Status = map[corev1.ConditionStatus]corev1.ConditionStatus{corev1.ConditionTrue: corev1.ConditionFalse}[c.Status]
			if c.Status == "" {
				c.Status = corev1.ConditionTrue
			}
		}
	}
	_, err = t.admin.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}
