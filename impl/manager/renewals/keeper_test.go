package renewals

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/pki"
)

// world is a keeper with a cluster in memory.
type world struct {
	*keeper
	t     *testing.T
	store client.WithWatch
	clock *clocktesting.FakeClock
	keys  map[string]*pki.Authority  // by pool
	hubs  map[string]heartbeat.Chain // by node
	asked int                        // for keys

	refuses func(l client.Object) error // what a patch of a Lease meets; nil: nothing
	patches atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC))
	w := &world{t: t, clock: clock, keys: map[string]*pki.Authority{}, hubs: map[string]heartbeat.Chain{}}
	w.store = fake.NewClientBuilder().WithScheme(kubescheme.Scheme).Build()
	c := interceptor.NewClient(w.store, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch,
			opts ...client.PatchOption) error {
			w.patches.Add(1)
			if w.refuses != nil {
				if err := w.refuses(o); err != nil {
					return err
				}
			}
			return c.Patch(ctx, o, p, opts...)
		},
	})
	w.keeper = w.start(c)
	return w
}

// start makes a keeper that knows nothing, as another leader of weir-manager.
func (w *world) start(c client.Client) *keeper {
	return &keeper{
		lease: func(ctx context.Context, pool string) (*coordinationv1.Lease, error) {
			l := &coordinationv1.Lease{}
			err := w.store.Get(ctx, heardOf(pool), l)
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return l, err
		},
		cache: w.store, client: c, clock: w.clock, began: w.clock.Now(), metrics: NewMetrics(),
		signer: func(_ context.Context, pool string) (*pki.Authority, error) {
			w.asked++
			return w.keys[pool], nil
		},
		log: slog.New(slog.DiscardHandler), slots: make(chan struct{}, parallel), pools: map[string]*pool{},
	}
}

func heardOf(pool string) client.ObjectKey {
	return client.ObjectKey{Namespace: contract.KeyNamespace, Name: contract.HeardPrefix + pool}
}

// join makes a pool with its Lease, lets weir-manager open its first period, and makes nodes whose hubs have told their
// anchors.
func (w *world) join(pool string, nodes ...string) (period uint64) {
	w.t.Helper()
	key, err := pki.NewPoolAuthority(pool, w.clock.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	w.keys[pool] = key
	at := heardOf(pool)
	w.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}})
	w.report(pool, heartbeat.Report{}.String())
	period = w.receipt(pool).Period
	for i, n := range nodes {
		chain := heartbeat.NewChain(n, [16]byte{byte(i), 1}, period-1)
		w.hubs[n] = chain
		w.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: n, Labels: map[string]string{contract.NodePoolLabel: pool},
		}})
		w.create(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: contract.NodeLeaseNamespace, Name: n, Annotations: map[string]string{
					contract.AnchorAnnotation: chain.Anchor().String(), contract.DigestAnnotation: "d",
				},
			},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &n, RenewTime: &metav1.MicroTime{Time: w.clock.Now().Add(-time.Minute)},
			},
		})
	}
	return period
}

func (w *world) create(o client.Object) {
	w.t.Helper()
	if err := w.store.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// report lets the leader of a pool write a text, and weir-manager look at it.
func (w *world) report(pool, text string) reconcile.Result {
	w.t.Helper()
	l := &coordinationv1.Lease{}
	if err := w.store.Get(w.t.Context(), heardOf(pool), l); err != nil {
		w.t.Fatal(err)
	}
	l.Spec.HolderIdentity = &text
	if err := w.store.Update(w.t.Context(), l); err != nil {
		w.t.Fatal(err)
	}
	return w.look(pool)
}

func (w *world) look(pool string) reconcile.Result {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: pool}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// call reports that the hubs of nodes have heard their kubelets in a period, after the time between two reports.
func (w *world) call(pool string, period uint64, nodes ...string) string {
	w.t.Helper()
	w.clock.Step(heartbeat.RollEvery)
	text := w.text(period, nodes...)
	w.report(pool, text)
	return text
}

func (w *world) text(period uint64, nodes ...string) string {
	var entries []heartbeat.Entry
	for _, n := range nodes {
		link, ok := w.hubs[n].Link(period)
		if !ok {
			w.t.Fatalf("node %s has no link of period %d", n, period)
		}
		entries = append(entries, heartbeat.Entry{Node: n, Period: period, Link: link, Reaches: true})
	}
	r, _ := heartbeat.NewReport(period, entries)
	return r.String()
}

// receipt is what the leader of a pool finds.
func (w *world) receipt(pool string) heartbeat.Receipt {
	w.t.Helper()
	l := &coordinationv1.Lease{}
	if err := w.store.Get(w.t.Context(), heardOf(pool), l); err != nil {
		w.t.Fatal(err)
	}
	r, err := heartbeat.OpenReceipt(l.Annotations[contract.ReceiptAnnotation], pool, pki.Vouches,
		[]*x509.Certificate{w.keys[pool].Cert()})
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// renewed are the nodes of a report that a receipt says were renewed.
func (w *world) renewed(pool, text string) (names []string) {
	w.t.Helper()
	r, err := heartbeat.ParseReport(text)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range r.Entries {
		if _, yes := w.receipt(pool).Renewed(r.Roster(), e.Node); yes {
			names = append(names, e.Node)
		}
	}
	return names
}

func (w *world) leaseOf(node string) *coordinationv1.Lease {
	w.t.Helper()
	l := &coordinationv1.Lease{}
	if err := w.store.Get(w.t.Context(), client.ObjectKey{Namespace: contract.NodeLeaseNamespace, Name: node}, l); err !=
		nil {
		w.t.Fatal(err)
	}
	return l
}

// outcomes are how often nodes in reports came to this.
func (w *world) outcomes(outcome string) int {
	return int(testutil.ToFloat64(w.metrics.beats.WithLabelValues(outcome)))
}

func (w *world) reports(outcome string) int {
	return int(testutil.ToFloat64(w.metrics.reports.WithLabelValues(outcome)))
}

func (w *world) wants(what string, got, want any) {
	w.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestRenewals: the nodes that a leader reports are renewed, and the receipt says which. Their Leases keep all else.
func TestRenewals(t *testing.T) {
	w := newWorld(t)
	period := w.join("harbour", "edge-1", "edge-2", "edge-3")
	text := w.call("harbour", period, "edge-1", "edge-3")
	w.wants("renewed", w.renewed("harbour", text), []string{"edge-1", "edge-3"})
	l, left := w.leaseOf("edge-1"), w.leaseOf("edge-2")
	if was := lease.RenewTime(left); !lease.RenewTime(l).After(was) {
		t.Errorf("renewTime %s does not grow", lease.RenewTime(l))
	}
	if *l.Spec.HolderIdentity != "edge-1" || l.Annotations[contract.DigestAnnotation] != "d" {
		t.Errorf("renewed as %+v", l)
	}
	if next := w.receipt("harbour").Period; next <= period {
		t.Errorf("period %d is followed by %d", period, next)
	}
	w.wants("counted", w.outcomes("renewed"), 2)
	before, patches := w.receipt("harbour"), w.patches.Load()
	w.look("harbour")
	w.wants("a report that was taken", w.receipt("harbour"), before)
	w.wants("written for it", w.patches.Load(), patches)
}

// TestDocuments: a receipt says what documents the cloud has of the pool, and nothing while that is not known.
func TestDocuments(t *testing.T) {
	w := newWorld(t)
	period := w.join("harbour", "a")
	for _, known := range []string{"", "abcdEF-_", "12345678", ""} {
		w.documents = func(_ context.Context, pool string) string {
			if pool != "harbour" {
				t.Errorf("asked for the documents of %s", pool)
			}
			return known
		}
		w.call("harbour", period, "a")
		if got := w.receipt("harbour").Documents; got != known {
			t.Errorf("receipt: %q, want %q", got, known)
		}
		period = w.receipt("harbour").Period
	}
}

// TestWhoIsRenewed: a leader renews no node of another pool, none that is gone, none without a Lease or an anchor, and
// none by another node's link. One that is wrong does not keep the others.
func TestWhoIsRenewed(t *testing.T) {
	w := newWorld(t)
	w.join("quay", "quay-1")
	period := w.join("harbour", "edge-1", "gone", "leaseless", "bare", "liar")
	w.hubs["liar"] = heartbeat.NewChain("liar", [16]byte{9}, period-5)
	bare := w.leaseOf("bare")
	delete(bare.Annotations, contract.AnchorAnnotation)
	for _, err := range []error{
		w.store.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}),
		w.store.Delete(t.Context(), w.leaseOf("leaseless")), w.store.Update(t.Context(), bare),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	foreign := w.leaseOf("quay-1")
	text := w.call("harbour", period, "edge-1", "quay-1", "gone", "leaseless", "bare", "liar")
	w.wants("renewed", w.renewed("harbour", text), []string{"edge-1"})
	w.wants("a node of another pool", lease.RenewTime(w.leaseOf("quay-1")), lease.RenewTime(foreign))
	w.wants("strangers", w.outcomes("unknown"), 4)
	w.wants("wrong links", w.outcomes("wrong"), 1)
	if err := w.store.Get(t.Context(), client.ObjectKey{Namespace: contract.NodeLeaseNamespace, Name: "leaseless"},
		&coordinationv1.Lease{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Lease was made: %v", err)
	}
}

// TestCutOff: a Lease that the leader forwards for is left alone, also if it is marked meanwhile, until its node has
// taken the mark away.
func TestCutOff(t *testing.T) {
	w := newWorld(t)
	period := w.join("harbour", "edge-1", "edge-2")
	mark := func(yes bool) {
		l := w.leaseOf("edge-1")
		lease.SetDelegated(l, yes)
		if err := w.store.Update(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	mark(true)
	was := w.leaseOf("edge-1")
	w.wants("renewed", w.renewed("harbour", w.call("harbour", period, "edge-1", "edge-2")), []string{"edge-2"})
	w.wants("the Lease", w.leaseOf("edge-1"), was)
	mark(false)
	w.refuses = func(o client.Object) error {
		if o.GetName() != "edge-1" {
			return nil
		}
		mark(true)
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "edge-1", errors.New("another version"))
	}
	w.wants("marked meanwhile", len(w.renewed("harbour", w.call("harbour", w.receipt("harbour").Period, "edge-1"))), 0)
	w.wants("counted", w.outcomes("cut-off"), 2)
	w.wants("counted as failed", w.outcomes("failed"), 0)
	mark(false)
	w.refuses = nil
	w.wants("back", w.renewed("harbour", w.call("harbour", w.receipt("harbour").Period, "edge-1")), []string{"edge-1"})
}

// TestReplay: a link counts once, for a leader that replays it and for the next leader.
func TestReplay(t *testing.T) {
	w := newWorld(t)
	period := w.join("harbour", "edge-1", "edge-2")
	w.call("harbour", period, "edge-1")
	was := w.leaseOf("edge-1")
	text := w.call("harbour", period, "edge-1", "edge-2")
	w.wants("renewed", w.renewed("harbour", text), []string{"edge-2"})
	w.wants("a link of before", lease.RenewTime(w.leaseOf("edge-1")), lease.RenewTime(was))
	w.wants("counted", w.outcomes("again"), 1)
}

// TestAnotherManager: a replica that has just begun to lead renews nobody by what was reported to the one before, and
// goes on with higher numbers.
func TestAnotherManager(t *testing.T) {
	w := newWorld(t)
	period := w.join("harbour", "edge-1")
	w.call("harbour", period, "edge-1")
	was, last := w.leaseOf("edge-1"), w.receipt("harbour").Period
	w.clock.SetTime(w.clock.Now().Add(-time.Hour)) // another machine, whose clock is behind
	w.keeper = w.start(w.client)
	w.look("harbour")
	w.wants("a report of before", lease.RenewTime(w.leaseOf("edge-1")), lease.RenewTime(was))
	next := w.receipt("harbour").Period
	if next <= last {
		t.Errorf("period %d is followed by %d", last, next)
	}
	w.wants("renewed", w.renewed("harbour", w.call("harbour", next, "edge-1")), []string{"edge-1"})
}

// TestOneBadPool: a pool without a key, one whose report is nonsense, and one whose Leases are refused do not keep the
// others. Each is counted, and goes on when it is well again.
func TestOneBadPool(t *testing.T) {
	w := newWorld(t)
	w.join("bad", "bad-1", "bad-2")
	w.join("good", "good-1")
	for _, text := range []string{"", "x", "1 A!! AAAA", string(make([]byte, heartbeat.MaxRollText+1))} {
		w.clock.Step(heartbeat.RollEvery)
		w.report("bad", text)
	}
	w.wants("nonsense", w.reports("invalid"), 4)
	refused := errors.New("refused")
	w.refuses = func(o client.Object) error {
		if o.GetName() == "bad-1" {
			return refused
		}
		return nil
	}
	w.call("bad", w.receipt("bad").Period)
	now := w.receipt("bad").Period
	text := w.call("bad", now, "bad-1", "bad-2")
	w.wants("beside one that is refused", w.renewed("bad", text), []string{"bad-2"})
	w.wants("refused", w.outcomes("failed"), 1)
	delete(w.keys, "bad")
	w.rekeyed("bad")
	w.clock.Step(heartbeat.RollEvery)
	if again := w.report("bad", heartbeat.Report{Period: 7}.String()); again.RequeueAfter == 0 {
		t.Error("a pool without a key is not looked at again")
	}
	for range 3 {
		w.clock.Step(again)
		w.look("bad")
	}
	w.wants("without a key", w.reports("unsigned"), 1)
	w.call("good", w.receipt("good").Period, "good-1")
	w.wants("another pool", w.reports("taken"), 5)
}

// TestClockOfNode: the renewTime stays a time of the node's own clock, and what the node writes next is later.
func TestClockOfNode(t *testing.T) {
	w := newWorld(t)
	period := w.join("harbour", "edge-1")
	began := w.clock.Now()
	own := func() time.Time { return w.clock.Now().Add(-time.Hour) }
	l := w.leaseOf("edge-1")
	lease.SetRenewTime(l, own())
	if err := w.store.Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		was := lease.RenewTime(w.leaseOf("edge-1"))
		w.call("harbour", period, "edge-1")
		period = w.receipt("harbour").Period
		if is := lease.RenewTime(w.leaseOf("edge-1")); !is.After(was) || is.After(own()) {
			t.Errorf("after %s: %s, want more than %s and less than %s", w.clock.Since(began), is, was, own())
		}
	}
	if lag := own().Sub(lease.RenewTime(w.leaseOf("edge-1"))); lag > 3*heartbeat.RollEvery/2 {
		t.Errorf("the renewTime is %s behind the node's clock", lag)
	}
}

// TestConflicts: a Lease that somebody else has written is looked at again, and is said to be renewed if it was.
func TestConflicts(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "edge-1", errors.New("another version"))
	for times, renewed := range map[int][]string{0: {"edge-1"}, rounds - 1: {"edge-1"}, rounds: nil} {
		w := newWorld(t)
		period := w.join("harbour", "edge-1")
		left := times
		w.refuses = func(o client.Object) error {
			if left--; o.GetName() == "edge-1" && left >= 0 {
				return conflict
			}
			return nil
		}
		was := w.leaseOf("edge-1")
		text := w.call("harbour", period, "edge-1")
		w.wants(fmt.Sprint("renewed after ", times, " conflicts"), w.renewed("harbour", text), renewed)
		if grew := lease.RenewTime(w.leaseOf("edge-1")).After(lease.RenewTime(was)); grew != (renewed != nil) {
			t.Errorf("after %d conflicts the renewTime grows: %v", times, grew)
		}
	}
}

// TestFlood: however often a leader reports, it is looked at at intervals, and then at the newest.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	period := w.join("harbour", "edge-1")
	first := w.receipt("harbour")
	for i := range 100 {
		w.report("harbour", heartbeat.Report{Period: uint64(i + 1)}.String())
	}
	w.wants("reports that were taken", w.reports("taken"), 1)
	w.wants("answered", w.receipt("harbour"), first)
	text := w.text(period, "edge-1")
	wait := w.report("harbour", text).RequeueAfter
	w.clock.Step(wait)
	w.look("harbour")
	w.wants("renewed", w.renewed("harbour", text), []string{"edge-1"})
}

// TestAnswerIsRepeated: a receipt that could not be written is written later, as it was.
func TestAnswerIsRepeated(t *testing.T) {
	w := newWorld(t)
	period := w.join("harbour", "edge-1")
	w.refuses = func(o client.Object) error {
		if o.GetNamespace() == contract.KeyNamespace {
			return errors.New("refused")
		}
		return nil
	}
	text := w.call("harbour", period, "edge-1")
	w.refuses = nil
	if names := w.renewed("harbour", text); len(names) > 0 {
		t.Fatalf("answered: %v", names)
	}
	w.look("harbour")
	w.wants("renewed", w.renewed("harbour", text), []string{"edge-1"})
}

// TestKeys: the key of a pool is not read for each report, and another one is seen at once.
func TestKeys(t *testing.T) {
	w := newWorld(t)
	period := w.join("harbour", "edge-1")
	for range 5 {
		w.call("harbour", period)
		w.call("harbour", period+1)
	}
	w.wants("times that the key was read", w.asked, 1)
	next, err := pki.NewPoolAuthority("harbour", w.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	w.keys["harbour"] = next
	w.rekeyed("harbour")
	w.call("harbour", period)
	w.receipt("harbour") // by the next one
}

// TestPoolGoes: what is known of a pool goes with its Lease, and of a node with its label.
func TestPoolGoes(t *testing.T) {
	w := newWorld(t)
	w.call("harbour", w.join("harbour", "edge-1", "edge-2"), "edge-1", "edge-2")
	node := &corev1.Node{}
	if err := w.store.Get(t.Context(), client.ObjectKey{Name: "edge-2"}, node); err != nil {
		t.Fatal(err)
	}
	node.Labels = nil
	if err := w.store.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	w.call("harbour", w.receipt("harbour").Period, "edge-1", "edge-2")
	w.wants("nodes", slices.Collect(maps.Keys(w.of("harbour").nodes)), []string{"edge-1"})
	w.wants("pools with a time", testutil.CollectAndCount(w.metrics.last), 1)
	l, err := w.lease(t.Context(), "harbour")
	if err == nil {
		err = w.store.Delete(t.Context(), l)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.look("harbour")
	w.wants("pools", len(w.pools), 0)
	w.wants("pools with a time", testutil.CollectAndCount(w.metrics.last), 0)
}
