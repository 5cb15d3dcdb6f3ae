package pools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/manager/coordinators"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// leases are a cluster with at most one Lease.
type leases struct {
	client.Client
	lease *coordinationv1.Lease // nil: none
	reads int
}

func (l *leases) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	l.reads++
	if _, ok := o.(*coordinationv1.Lease); !ok || l.lease == nil {
		return apierrors.NewNotFound(coordinationv1.Resource("leases"), rivalLease)
	}
	l.lease.DeepCopyInto(o.(*coordinationv1.Lease))
	return nil
}

func (l *leases) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// TestBesideOpenYurt: while yurt-manager renews its Lease nothing is done to a NodePool; once it is gone, it is.
func TestBesideOpenYurt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	cluster := &leases{lease: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("yurt-manager-0"), LeaseDurationSeconds: ptr.To[int32](15),
		RenewTime: &metav1.MicroTime{Time: clock.Now()},
	}}}
	pools := &leases{} // fails the test's client only if it is asked
	beside := &rival{reader: cluster, clock: clock, metrics: NewMetrics(), log: slog.New(slog.DiscardHandler)}
	k := &keeper{
		publisher: publisher{pools, cluster, nil}, clock: clock, metrics: NewMetrics(), log: slog.New(slog.DiscardHandler),
		rival: beside, places: &coordinators.Keeper{
			Client: pools, Images: pools, Clock: clock,
		}, granter: granter{pools, pools, map[string]string{}}, seen: func(string) Seen { return Seen{} },
		gate: func() directory.Gate { return directory.Gate{} },
	}
	look := func() (again time.Duration) {
		t.Helper()
		r, err := k.Reconcile(t.Context(), reconcile.Request{})
		if err != nil {
			t.Fatal(err)
		}
		return r.RequeueAfter
	}
	for range 3 {
		if again := look(); again != recheck || pools.reads != 0 {
			t.Errorf("beside yurt-manager: %d reads of NodePools, again after %v", pools.reads, again)
		}
	}
	if cluster.reads != 1 {
		t.Errorf("%d reads of its Lease within a minute", cluster.reads)
	}
	clock.SetTime(clock.Now().Add(3 * recheck))
	if look(); pools.reads == 0 {
		t.Error("it is gone, and NodePools are not looked at")
	}
	cluster.lease.Spec.RenewTime = &metav1.MicroTime{Time: clock.Now().Add(2 * recheck)} // its clock is ahead
	clock.SetTime(clock.Now().Add(2 * recheck))
	pools.reads = 0
	if again := look(); again != recheck || pools.reads != 0 {
		t.Errorf("it is back: %d reads of NodePools, again after %v", pools.reads, again)
	}
	cluster.lease.Spec.HolderIdentity = ptr.To("")
	clock.SetTime(clock.Now().Add(recheck))
	if look(); pools.reads == 0 {
		t.Error("it gave its Lease back, and NodePools are not looked at")
	}
}

// other is a cluster in which every name is taken.
type other struct {
	client.Client
	labels map[string]string
}

func (o *other) Get(_ context.Context, _ client.ObjectKey, have client.Object, _ ...client.GetOption) error {
	have.SetLabels(o.labels)
	return nil
}

// TestTaken: an object that cannot be made is somebody else's, or our own that the cache has not heard of.
func TestTaken(t *testing.T) {
	want := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Name: "leader-hub-x", Labels: map[string]string{contract.ManagedLabel: contract.ManagedBy},
		},
	}
	for _, c := range []struct {
		labels  map[string]string
		foreign bool
	}{
		{nil, true}, {map[string]string{contract.ManagedLabel: "helm"}, true},
		{map[string]string{contract.ManagedLabel: contract.ManagedBy}, false},
	} {
		err := (&publisher{reader: &other{labels: c.labels}}).taken(t.Context(), want)
		var foreign *foreignError
		if errors.As(err, &foreign) != c.foreign || errors.Is(err, errBehind) == c.foreign {
			t.Errorf("labels %v: %v", c.labels, err)
		}
	}
}

// mixed is a cluster with one Pool, whose Nodes are listed in another order each time, as a cache does.
type mixed struct {
	client.Client
	pool  poolv1.Pool
	nodes []corev1.Node
	rand  *rand.Rand
}

func (m *mixed) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if p, ok := o.(*poolv1.Pool); ok {
		m.pool.DeepCopyInto(p)
		return nil
	}
	return apierrors.NewNotFound(corev1.Resource("objects"), key.Name)
}

func (m *mixed) List(_ context.Context, all client.ObjectList, _ ...client.ListOption) error {
	m.rand.Shuffle(len(m.nodes), func(i, j int) { m.nodes[i], m.nodes[j] = m.nodes[j], m.nodes[i] })
	all.(*corev1.NodeList).Items = slices.Clone(m.nodes)
	return nil
}

// TestOrderOfNodes: the status of a Pool is the same in whatever order its Nodes are listed. Otherwise each write asks
// for the next one, until the same order comes twice by chance.
func TestOrderOfNodes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	cluster := &mixed{rand: rand.New(rand.NewPCG(seed, 0))}
	cluster.pool.Name, cluster.pool.Spec.Mode = "harbour", poolv1.ModeLeaderHubs
	for i := range 7 {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
		n.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			{
				Type: contract.CertificatesCondition, Status: corev1.ConditionTrue, Reason: contract.AuthorityEnded,
				Message: "it ended",
			},
		}
		cluster.nodes = append(cluster.nodes, n)
	}
	for why, told := range map[string]func(node string) (Entry, bool){
		"HubsMissing": func(string) (Entry, bool) { return Entry{}, false },
		"EdgeFails": func(string) (Entry, bool) {
			return Entry{Digest: digest.Digest{Role: digest.Pending, Cause: digest.Refused}, Told: clock.Now()}, true
		},
	} {
		k := &keeper{
			publisher: publisher{cluster, cluster, nil}, clock: clock, metrics: NewMetrics(),
			seen: func(string) Seen { return Seen{Heard: 7} }, told: told,
			gate: func() directory.Gate { return directory.Gate{} },
		}
		var first poolv1.Status
		for i := range 50 {
			v, err := k.read(t.Context(), "harbour")
			if err != nil {
				t.Fatal(err)
			}
			v.nodepool = &nodepool.NodePool{}
			v.nodepool.Spec.EnableLeaderElection, v.nodepool.Spec.InterConnectivity = true, true
			v.nodepool.Status.LeaderEndpoints = []nodepool.Leader{{NodeName: "node-3"}}
			v.plan = planOf(v.nodepool, v.own)
			if describe(v, clock.Now()); i == 0 {
				first = v.own.Status
			}
			if d := cmp.Diff(first, v.own.Status); d != "" {
				t.Fatalf("%s: listed for the %dth time (-first +now):\n%s", why, i+1, d)
			}
		}
		ready := meta.FindStatusCondition(first.Conditions, poolv1.Ready)
		if ready.Reason != why || !strings.Contains(ready.Message, "node-0") {
			t.Errorf("Ready is %+v, want %s", ready, why)
		}
	}
}
