package revocation

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func node(name, pool, uid string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(uid), Labels: map[string]string{contract.NodePoolLabel: pool},
		},
	}
}

// desk is a Revoker at a cluster in memory, for the pool harbour.
type desk struct {
	*Revoker
	t         *testing.T
	cluster   *cluster
	clock     *clocktesting.FakePassiveClock
	authority *pki.Succession // nil: the pool has none
	events    *events.FakeRecorder
}

func newDesk(t *testing.T, c *cluster) *desk {
	d := &desk{
		t: t, cluster: c, clock: clocktesting.NewFakePassiveClock(now),
		authority: &pki.Succession{Signer: must(pki.NewPoolAuthority("harbour", now))},
	}
	d.events = events.NewFakeRecorder(10_000)
	d.Revoker = New(Config{
		Client: c, Reader: c, Events: d.events, Clock: d.clock, Metrics: NewMetrics(), Log: slog.New(slog.DiscardHandler),
		Authority: func(context.Context, string) (*pki.Succession, error) { return d.authority, nil },
	})
	return d
}

// look is one reconciliation, a minute later.
func (d *desk) look() error {
	d.clock.SetTime(d.clock.Now().Add(time.Minute))
	_, err := d.Reconcile(d.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "harbour"}})
	return err
}

func (d *desk) looks() {
	d.t.Helper()
	if err := d.look(); err != nil {
		d.t.Fatal(err)
	}
}

// asks is a request of a node for a certificate.
func asks(k pki.Kind, node string, hosts ...string) *x509.CertificateRequest {
	i := pki.Must(k)
	return must(
		pki.ParseRequest(
			must(i.Request(pki.Subject{Pool: "harbour", Node: node, Name: "one", Hosts: hosts}, must(pki.NewKey())))))
}

// signs is a coordinator's certificate of a node, as it is signed.
func (d *desk) signs(n *corev1.Node, hosts ...string) (*x509.Certificate, error) {
	d.t.Helper()
	r, i := asks(pki.Coordinator, n.Name, hosts...), pki.Must(pki.Coordinator)
	begin, err := d.Begin(d.t.Context(), "harbour", n, r, d.clock.Now().Add(i.Life.Usual))
	if err != nil {
		return nil, err
	}
	pem, err := d.authority.Signer.AnswerFrom(begin, i, pki.Subject{Pool: "harbour", Node: n.Name, Hosts: hosts}, r,
		d.clock.Now(), i.Life.Usual)
	if err != nil {
		return nil, err
	}
	return must(pki.ParseCertificates(pem))[0], nil
}

// hub holds what the pool's list says.
func (d *desk) hub() *trust.HeldDenylist {
	d.t.Helper()
	h := trust.NewDenylist(trust.DenylistConfig{
		Pool: "harbour", Trusted: d.authority.Trusted, Logger: slog.New(slog.DiscardHandler),
	})
	if text := must(notes(d.t.Context(), d.cluster, contract.KeyNamespace, contract.DenylistPrefix+"harbour")).
		Data[contract.DenylistKey]; text != "" {
		must(h.Take([]byte(text)))
	}
	return h
}

// list is the pool's denylist as a hub takes it; the zero value if there is none.
func (d *desk) list() trust.Denylist {
	d.t.Helper()
	c := must(notes(d.t.Context(), d.cluster, contract.KeyNamespace, contract.DenylistPrefix+"harbour"))
	if len(c.Data) == 0 {
		return trust.Denylist{}
	}
	l, _, err := trust.OpenDenylist([]byte(c.Data[contract.DenylistKey]), "harbour", d.authority.Trusted())
	return must(l, err)
}

func (d *desk) denied() (names []string) {
	for _, e := range d.list().Entries {
		names = append(names, e.Node)
	}
	return names
}

func (d *desk) barred() map[string]string {
	return must(notes(d.t.Context(), d.cluster, contract.ManagerNamespace, contract.RevokedNodes)).Data
}

// readers are the users that may read the list.
func (d *desk) readers() (users []string) {
	var b rbacv1.RoleBinding
	if err := d.cluster.Get(d.t.Context(), client.ObjectKey{
		Namespace: contract.KeyNamespace, Name: RolePrefix + "harbour",
	}, &b); err != nil {
		d.t.Fatal(err)
	}
	for _, s := range b.Subjects {
		users = append(users, s.Kind+" "+s.Name)
	}
	return users
}

// TestDeleted: a node that is deleted is denied, barred and has lost its grant; others keep all. It is written once.
func TestDeleted(t *testing.T) {
	coordinator := node("edge-1", "harbour", "u-1")
	coordinator.Labels[contract.CoordinatorLabel] = "one"
	d := newDesk(t, newCluster(coordinator, node("edge-2", "harbour", "u-2"), node("edge-3", "quay", "u-3")))
	d.looks()
	signed := must(d.signs(coordinator, "10.0.0.1"))
	if len(d.denied()) != 0 || len(d.barred()) != 0 || len(d.readers()) != 4 {
		t.Errorf("before: denied %v, barred %v, readers %v", d.denied(), d.barred(), d.readers())
	}
	d.cluster.writes = nil
	d.looks()
	if len(d.cluster.writes) != 0 {
		t.Errorf("nothing happened, and was written: %v", d.cluster.writes)
	}
	d.cluster.drop(coordinator)
	d.looks()
	e := d.list().Entries
	if len(e) != 1 || e[0].Node != "edge-1" || e[0].UID != "u-1" || e[0].Replica != "one" ||
		!slices.Equal(e[0].Hosts, []string{"10.0.0.1"}) ||
		!slices.Equal(e[0].Keys, []string{trust.KeyOf(signed.PublicKey)}) || !e[0].Before.Equal(d.clock.Now()) {
		t.Errorf("entries %+v", e)
	}
	if b := d.barred(); len(b) != 1 || b["edge-1"] == "" {
		t.Errorf("barred %v", b)
	}
	if want := []string{"User system:node:edge-2", "User weir:hub:harbour:edge-2"}; !slices.Equal(d.readers(), want) {
		t.Errorf("readers %v", d.readers())
	}
	number := d.list().Number
	d.looks()
	if d.list().Number != number {
		t.Error("it is written again")
	}
	if n := testutil.ToFloat64(d.Metrics.revoked.WithLabelValues("deleted")); n != 1 {
		t.Errorf("%v are counted", n)
	}
}

// TestWhileAway: who was deleted, or deleted and made again, while no manager ran is denied all the same.
func TestWhileAway(t *testing.T) {
	c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"), node("edge-3", "harbour", "u-3"))
	d := newDesk(t, c)
	d.looks()
	c.drop(node("edge-1", "", ""))
	c.store(node("edge-2", "harbour", "u-2b"))
	after := newDesk(t, c)
	after.authority = d.authority
	after.looks()
	if got := after.denied(); !slices.Equal(got, []string{"edge-1", "edge-2"}) || len(after.barred()) != 2 ||
		len(after.readers()) != 4 {
		t.Errorf("denied %v, barred %v, readers %v", got, after.barred(), after.readers())
	}
}

// TestLeft: a node that goes to another pool loses what it had in this one, and is not barred. A pool without an
// authority has nothing to deny.
func TestLeft(t *testing.T) {
	c := newCluster(node("edge-1", "harbour", "u-1"))
	d := newDesk(t, c)
	d.looks()
	c.store(node("edge-1", "quay", "u-1"))
	d.looks()
	if !slices.Equal(d.denied(), []string{"edge-1"}) || len(d.barred()) != 0 || len(d.readers()) != 0 {
		t.Errorf("denied %v, barred %v, readers %v", d.denied(), d.barred(), d.readers())
	}
	d.authority = nil
	c.store(node("edge-2", "harbour", "u-2"))
	d.looks()
	c.drop(node("edge-2", "", ""))
	d.looks()
	if b := d.barred(); b["edge-2"] == "" {
		t.Errorf("without an authority: barred %v", b)
	}
}

// TestStaleCache: a cache that lacks a Node costs it nothing.
func TestStaleCache(t *testing.T) {
	c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"))
	d := newDesk(t, c)
	d.looks()
	c.cached = []corev1.Node{*node("edge-2", "harbour", "u-2")}
	d.looks()
	if len(d.denied()) != 0 || len(d.barred()) != 0 {
		t.Errorf("denied %v, barred %v", d.denied(), d.barred())
	}
	c.cached = nil
	c.drop(node("edge-1", "", ""))
	d.looks()
	if got := d.denied(); !slices.Equal(got, []string{"edge-1"}) {
		t.Errorf("denied %v", got)
	}
}

// TestInterrupted: whatever fails on the way, in the end all is done.
func TestInterrupted(t *testing.T) {
	for _, step := range []string{
		"get Node /edge-1", "get ConfigMap weir-pki/nodes-harbour", "create ConfigMap kube-system/weir-revoked-nodes",
		"create ConfigMap weir-pki/denylist-harbour",
		"update RoleBinding weir-pki/weir-pool-harbour", "update ConfigMap weir-pki/nodes-harbour",
	} {
		c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"))
		d := newDesk(t, c)
		d.looks()
		c.drop(node("edge-1", "", ""))
		failed := false
		c.fails = func(what string) bool {
			now := what == step && !failed
			failed = failed || now
			return now
		}
		if err := d.look(); err == nil || !failed {
			t.Errorf("%s: failed %t, %v", step, failed, err)
		}
		d.looks()
		if got := d.denied(); !slices.Equal(got, []string{"edge-1"}) || len(d.barred()) != 1 || len(d.readers()) != 2 {
			t.Errorf("%s: denied %v, barred %v, readers %v", step, got, d.barred(), d.readers())
		}
	}
}

// TestBegin: a node of a name that was revoked gets certificates that begin later, and none before that is written
// down.
func TestBegin(t *testing.T) {
	c := newCluster(node("edge-1", "harbour", "u-1"))
	d := newDesk(t, c)
	d.looks()
	begin := func(n *corev1.Node) (time.Time, error) {
		return d.Begin(t.Context(), "harbour", n, asks(pki.Hub, n.Name), d.clock.Now().Add(time.Hour))
	}
	if at, err := begin(node("edge-1", "harbour", "u-1")); err != nil || !at.IsZero() {
		t.Errorf("before: %s, %v", at, err)
	}
	again := node("edge-1", "harbour", "u-2")
	c.store(again)
	if at, err := begin(again); err == nil {
		t.Errorf("while its predecessor is not taken back: %s", at)
	}
	d.looks()
	if at, err := begin(again); err != nil || !at.Equal(d.clock.Now().Add(time.Second)) {
		t.Errorf("after: %s, %v", at, err)
	}
	if at, err := begin(node("edge-2", "harbour", "u-3")); err != nil || !at.IsZero() {
		t.Errorf("another: %s, %v", at, err)
	}
}

// TestOtherSigner: when another authority signs, the list is signed by it before the one before it is trusted no more;
// numbers grow.
func TestOtherSigner(t *testing.T) {
	c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"))
	d := newDesk(t, c)
	d.looks()
	c.drop(node("edge-1", "", ""))
	d.looks()
	first := d.list()
	if err := d.authority.Prepare(must(pki.NewPoolAuthority("harbour", now)), now, pki.Usual()); err != nil {
		t.Fatal(err)
	}
	d.looks()
	if d.list().Number != first.Number {
		t.Error("it is signed anew before another authority signs")
	}
	if err := d.authority.Switch(now.Add(pki.Usual().Settle)); err != nil {
		t.Fatal(err)
	}
	d.looks()
	if l := d.list(); l.Number <= first.Number || len(l.Entries) != 1 {
		t.Errorf("%+v after %+v", l, first)
	}
	d.authority.Before = nil
	if l := d.list(); len(l.Entries) != 1 {
		t.Errorf("by the new one alone: %+v", l)
	}
}

// TestRestored: the cloud is restored from before a deletion. What hubs hold counts on, and the next list is above it.
func TestRestored(t *testing.T) {
	c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"))
	d := newDesk(t, c)
	hub := trust.NewDenylist(trust.DenylistConfig{
		Pool: "harbour", Trusted: d.authority.Trusted, Logger: slog.New(slog.DiscardHandler),
	})
	take := func() {
		m := must(notes(t.Context(), c, contract.KeyNamespace, contract.DenylistPrefix+"harbour"))
		if _, err := hub.Take([]byte(m.Data[contract.DenylistKey])); err != nil {
			t.Fatal(err)
		}
	}
	d.looks()
	backup := map[string]client.Object{}
	for k, o := range c.objects {
		backup[k] = o.DeepCopyObject().(client.Object)
	}
	c.drop(node("edge-1", "", ""))
	d.looks()
	take()
	held := hub.Number()
	c.objects = backup
	d.looks()
	c.drop(node("edge-2", "", ""))
	d.looks()
	take()
	var names []string
	for _, e := range hub.Entries() {
		names = append(names, e.Node)
	}
	if !slices.Equal(names, []string{"edge-1", "edge-2"}) || hub.Number() <= held {
		t.Errorf("%v, number %d after %d", names, hub.Number(), held)
	}
}

// TestRecalled: what hubs give back after the cloud was restored is in the next list, above what they hold, once; the
// Node that a backup has brought back gets nothing, and one that is made again does. What no authority of the pool
// signed is nothing.
func TestRecalled(t *testing.T) {
	ghost := node("edge-1", "harbour", "u-1")
	c := newCluster(ghost, node("edge-2", "harbour", "u-2"))
	d := newDesk(t, c)
	d.looks()
	backup := map[string]client.Object{}
	for k, o := range c.objects {
		backup[k] = o.DeepCopyObject().(client.Object)
	}
	c.drop(node("edge-1", "", ""))
	d.looks()
	held := must(notes(t.Context(), c, contract.KeyNamespace, contract.DenylistPrefix+"harbour")).
		Data[contract.DenylistKey]
	before := d.list()

	c.objects = backup
	d.clock.SetTime(now) // and its clock is behind
	back := must(notes(t.Context(), c, contract.KeyNamespace, contract.ReturnedPrefix+"harbour"))
	stranger := must(pki.NewPoolAuthority("harbour", now))
	forged := trust.Denylist{
		Pool: "harbour", Number: before.Number + 1000, Issued: now,
		Entries: []trust.Denial{{Node: "edge-2", Before: now.Add(time.Hour)}},
	}
	back.Data = map[string]string{contract.DenylistKey: string(must(forged.Sign(stranger)))}
	c.store(back)
	d.looks()
	if names := d.denied(); len(names) > 0 {
		t.Fatalf("a stranger takes certificates back: %v", names)
	}
	back = must(notes(t.Context(), c, contract.KeyNamespace, contract.ReturnedPrefix+"harbour"))
	back.Data[contract.DenylistKey] += held
	c.store(back)
	d.looks()
	after := d.list()
	if !slices.Equal(d.denied(), []string{"edge-1"}) || after.Number <= before.Number ||
		!after.Entries[0].Before.Equal(before.Entries[0].Before) || after.Entries[0].UID != "u-1" {
		t.Errorf("%+v, and %+v was given back", after, before)
	}
	if d.looks(); d.list().Number != after.Number {
		t.Error("what was given back is written again")
	}
	if users := d.readers(); slices.ContainsFunc(users, func(u string) bool { return strings.HasSuffix(u, "edge-1") }) ||
		len(users) == 0 {
		t.Errorf("granted to %v, and edge-1 was deleted", users)
	}
	if b := d.barred(); !strings.HasSuffix(b["edge-1"], " harbour u-1") {
		t.Errorf("who may not register: %v", b)
	}
	var no *pki.MismatchError
	if ok, err := d.Granted(t.Context(), "harbour", ghost); !errors.As(err, &no) || no.Field != "node" {
		t.Errorf("a Node that a backup has brought back: %v, %v", ok, err)
	}
	if ok, err := d.Granted(t.Context(), "harbour", node("edge-2", "harbour", "u-2")); err != nil || !ok {
		t.Errorf("the node beside it: %v, %v", ok, err)
	}
	c.drop(ghost)
	anew := node("edge-1", "harbour", "u-3")
	c.store(anew)
	d.looks()
	if ok, err := d.Granted(t.Context(), "harbour", anew); err != nil || !ok {
		t.Errorf("a Node that was made anew: %v, %v", ok, err)
	}
}

// TestManyNames: the policy's ConfigMap is bounded: the oldest go.
func TestManyNames(t *testing.T) {
	d := newDesk(t, newCluster())
	for round := range 2 {
		var left []gone
		for i := range MaxNames {
			left = append(left, gone{fmt.Sprintf("edge-%d-%d", round, i), member{UID: "u"}, true})
		}
		if _, err := bar(t.Context(), &d.Config, "harbour", left, true); err != nil {
			t.Fatal(err)
		}
		d.clock.SetTime(d.clock.Now().Add(time.Hour))
	}
	names := d.barred()
	for name := range names {
		if !strings.HasPrefix(name, "edge-1-") {
			t.Fatalf("%s is there still", name)
		}
	}
	d.clock.SetTime(now.Add(2 * 366 * 24 * time.Hour))
	if _, err := bar(t.Context(), &d.Config, "harbour", []gone{{"edge-9", member{UID: "u"}, true}}, true); err != nil {
		t.Fatal(err)
	}
	if after := d.barred(); len(names) != MaxNames || len(after) != 1 {
		t.Errorf("%d names, %d when they ended", len(names), len(after))
	}
}
