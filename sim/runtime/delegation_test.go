package runtime

import (
	"context"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	leasecontroller "k8s.io/component-helpers/apimachinery/lease"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/parts"
)

// renewal is the interval of kubelets here; real ones renew every 10 s.
const renewal = time.Second

// kubeletOf renews a node's Lease through its hub, with the kubelet's own code, until the function returned is called.
func kubeletOf(t *testing.T, s Site, node string) (kill func()) {
	t.Helper()
	pair, err := s.(*localSite).cloud.KubeletCertificate(node, 0)
	if err != nil {
		t.Fatal(err)
	}
	endpoint, err := s.Endpoint(node, "kubelet")
	if err != nil {
		t.Fatal(err)
	}
	trust := endpoint.Trust()
	trust.CertData, trust.KeyData = pair.CertPEM, pair.KeyPEM
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: endpoint.URL, TLSClientConfig: trust,
		ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," +
				runtime.ContentTypeJSON,
		},
		Timeout: 10 * time.Second, QPS: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		leasecontroller.NewController(clock.RealClock{}, client, node, 40, nil, renewal, node, contract.NodeLeaseNamespace,
			nil).Run(ctx)
	}()
	kill = func() {
		cancel()
		<-done
	}
	t.Cleanup(kill)
	return kill
}

// grantForwarder gives the forwarder of a pool what weir-manager gives it.
func grantForwarder(t *testing.T, admin kubernetes.Interface, p Pool) {
	t.Helper()
	name := contract.ForwarderRolePrefix + p.Name
	meta := metav1.ObjectMeta{Namespace: contract.NodeLeaseNamespace, Name: name}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: p.NodeNames(),
		Verbs: []string{"get", "update", "patch"},
	}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}
	for _, n := range p.NodeNames() {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: contract.ForwarderUserPrefix + p.Name + ":" + n,
		})
	}
	if _, err := admin.RbacV1().Roles(meta.Namespace).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.RbacV1().RoleBindings(meta.Namespace).Create(t.Context(), binding, metav1.CreateOptions{}); err !=
		nil {
		t.Fatal(err)
	}
}

// counted tells how often the Lease of a node was written since.
func counted(t *testing.T, admin kubernetes.Interface) (writes func(node string) int) {
	t.Helper()
	leases, err := admin.CoordinationV1().Leases(contract.NodeLeaseNamespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leases.Stop)
	var mu sync.Mutex
	seen := map[string]int{}
	go func() {
		for ev := range leases.ResultChan() {
			if l, ok := ev.Object.(*coordinationv1.Lease); ok && ev.Type == watch.Modified {
				mu.Lock()
				seen[l.Name]++
				mu.Unlock()
			}
		}
	}()
	return func(node string) int {
		mu.Lock()
		defer mu.Unlock()
		return seen[node]
	}
}

// beat is what the tests read of a node's Lease in the cloud.
type beat struct {
	renewed   time.Time
	delegated bool
}

func beatOf(t *testing.T, admin kubernetes.Interface, node string) (b beat) {
	t.Helper()
	l, err := admin.CoordinationV1().Leases(contract.NodeLeaseNamespace).Get(t.Context(), node, metav1.GetOptions{})
	if err == nil && l.Spec.RenewTime != nil {
		b = beat{l.Spec.RenewTime.Time, l.Annotations[contract.DelegateHeartbeat] == contract.Delegated}
	}
	return b
}

// grows waits until a Lease has grown so many times, each time as it ought to be.
func grows(t *testing.T, admin kubernetes.Interface, node string, times int, delegated bool) {
	t.Helper()
	var last time.Time
	for n := 0; n < times; n++ {
		wait(t, "the Lease of "+node+" to grow", func() bool {
			b := beatOf(t, admin, node)
			if !b.renewed.After(last) {
				return false
			}
			if n > 0 && b.delegated != delegated {
				t.Fatalf("the Lease of %s grew for the %dth time: delegated %t", node, n, b.delegated)
			}
			if n == 0 && b.delegated != delegated {
				return false // the first counts when it is as it ought to be
			}
			last = b.renewed
			return true
		})
	}
}

// TestDelegation: a node that is cut off stays alive in the cloud, annotated, also when another hub leads; it speaks
// for itself after it has returned; and when its kubelet dies, its Lease stands still. All of it under the policies of
// weir-manager.
func TestDelegation(t *testing.T) {
	t.Parallel()
	pool := Pool{
		Name: "edge", Nodes: 4, Mode: Weir, Unread: true,
		Uplink:   Link{Up: 8_000_000, Down: 8_000_000, RTT: 20 * time.Millisecond},
		LAN:      &Link{RTT: time.Millisecond},
		HubFlags: parts.Flags{"heartbeat-interval": 2 * time.Second, "heartbeat-timeout": time.Second},
	}
	stock := Pool{Name: "stock", Nodes: 1, Mode: Stock, Uplink: pool.Uplink}
	site := up(t, Topology{Pools: []Pool{pool, stock}})
	if err := Start(t.Context(), site, site.Parts()[1:]...); err != nil {
		t.Fatal(err)
	}
	admin, err := kubernetes.NewForConfig(site.Admin())
	if err != nil {
		t.Fatal(err)
	}
	grantForwarder(t, admin, pool)
	if err := site.(*localSite).cloud.Apply(t.Context(), []byte(manifests.Policies())); err != nil {
		t.Fatal(err)
	}
	wait(t, "a ready pool", func() bool { return stateOf(t, site).Ready })
	kill := map[string]func(){}
	for _, name := range pool.NodeNames() {
		kill[name] = kubeletOf(t, site, name)
	}
	for _, node := range pool.NodeNames() {
		grows(t, admin, node, 2, false)
	}
	first := stateOf(t, site).Leader
	var far []string // the others
	for _, node := range pool.NodeNames() {
		if node != first {
			far = append(far, node)
		}
	}
	both := func(node string) int64 {
		return bytesOf(site.Link("edge"), node, ClassHeartbeat, link.Down) + bytesOf(site.Link("edge"), node, ClassHeartbeat,
			link.Up)
	}

	// Bytes: of a kubelet's heartbeat without Weir, of one that a hub sends, and of one that is forwarded.
	plain := stock.NodeNames()[0]
	kubeletOf(t, site, plain)
	grows(t, admin, plain, 2, false)
	all := func() int64 {
		return link.Sum(site.Link("stock").Counters(), func(c link.Counter) bool { return c.Node == plain })
	}
	renewals := counted(t, admin)
	before, from := all(), renewals(plain)
	grows(t, admin, plain, 11, false)
	whole := float64(all()-before) / float64(renewals(plain)-from)
	before, from = both(first), renewals(first)
	grows(t, admin, first, 11, false)
	own := float64(both(first)-before) / float64(renewals(first)-from)
	site.Link("edge").Cut(link.Both, far[0])
	grows(t, admin, far[0], 3, true)
	before, from = both(first), renewals(first)
	forwards := renewals(far[0])
	grows(t, admin, far[0], 11, true)
	beside := own * float64(renewals(first)-from)
	forwarded := (float64(both(first)-before) - beside) / float64(renewals(far[0])-forwards)
	t.Logf("bytes of a heartbeat, both ways, TLS included: %.0f without Weir, %.0f of the node itself, %.0f forwarded",
		whole, own, forwarded)
	if own > whole*0.6 || forwarded > whole*0.8 {
		t.Errorf("a heartbeat costs more than 0.6 of one without Weir, or 0.8 if it is forwarded")
	}

	// Another leader, which forwards for two.
	site.Link("edge").Cut(link.Both, far[1])
	part, err := site.Part(HubOf(first))
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, node := range far[:2] {
		grows(t, admin, node, 4, true)
	}
	if now := stateOf(t, site).Leader; now != far[2] {
		t.Errorf("%q leads, not the only one that reaches the cloud, %s", now, far[2])
	}

	site.Link("edge").Heal(link.Both, far[0])
	grows(t, admin, far[0], 7, false)

	kill[far[1]]()
	if more := standsStill(t, admin, far[1], 8*renewal); more > 2 { // what was under way
		t.Errorf("its kubelet died, and the Lease of %s grew %d times", far[1], more)
	}
}

// standsStill waits until a Lease has not changed for some time, and tells how often it did before.
func standsStill(t *testing.T, admin kubernetes.Interface, node string, long time.Duration) (changes int) {
	t.Helper()
	last, since := beatOf(t, admin, node), time.Now()
	wait(t, "the Lease of "+node+" to stand still", func() bool {
		if b := beatOf(t, admin, node); b != last {
			last, since = b, time.Now()
			changes++
		}
		return time.Since(since) > long
	})
	return changes
}
