package revocation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/pki"
	poolv1 "github.com/weir-edge/weir/impl/pool"
	"github.com/weir-edge/weir/impl/trust"
)

// replica is the Node of a coordinator, which says that it has some addresses.
func replica(name, uid string, addresses ...string) *corev1.Node {
	n := node(name, "harbour", uid)
	n.Labels[contract.CoordinatorLabel] = "one"
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

// goesOn looks whether a node that joins is granted what it needs, and another one that leaves is denied beside the
// liar.
func (d *desk) goesOn(liar string) {
	d.t.Helper()
	d.cluster.store(node("edge-8", "harbour", "u-8"))
	d.looks()
	if ok, err := d.Granted(d.t.Context(), "harbour", node("edge-8", "harbour", "u-8")); !ok || err != nil {
		d.t.Errorf("a node that joins: granted %t, %v", ok, err)
	}
	d.cluster.drop(node("edge-9", "", ""))
	d.looks()
	if got := d.denied(); !slices.Equal(got, []string{liar, "edge-9"}) || d.barred()[liar] == "" ||
		d.barred()["edge-9"] == "" {
		d.t.Errorf("denied %v, barred %v", got, d.barred())
	}
}

// TestManyAddresses: a coordinator's node whose status has more addresses than an entry may have, or a megabyte of
// them, is denied when it is deleted, and nobody else is held up.
func TestManyAddresses(t *testing.T) {
	for _, n := range []int{33, 60_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var all []string
			for i := range n {
				all = append(all, fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
			}
			liar := replica("edge-1", "u-1", all...)
			d := newDesk(t, newCluster(liar, node("edge-9", "harbour", "u-9")))
			d.looks()
			first := must(d.signs(liar, all[:30]...))
			d.looks()
			second := must(d.signs(liar, all[2:33]...))
			d.looks()
			if size := len(must(notes(t.Context(), d.cluster, contract.KeyNamespace, contract.RosterPrefix+"harbour")).
				Data["edge-1"]); size > 4<<10 {
				t.Errorf("its line of the roster has %d bytes", size)
			}
			d.cluster.drop(liar)
			d.looks()
			if h := d.hub(); h.Refuse(first) == nil || h.Refuse(second) == nil {
				t.Error("what it had counts on")
			}
			d.goesOn("edge-1")
		})
	}
}

// TestOldRoster: what a version before wrote, which copied the addresses of statuses, denies the liar alone.
func TestOldRoster(t *testing.T) {
	var all []string
	for i := range 33 {
		all = append(all, fmt.Sprint("10.0.0.", i))
	}
	liar, honest := replica("edge-1", "u-1"), replica("edge-2", "u-2")
	d := newDesk(t, newCluster(liar, honest, node("edge-9", "harbour", "u-9")))
	d.looks()
	signed := must(d.signs(honest, "10.0.0.7"))
	c := must(notes(t.Context(), d.cluster, contract.KeyNamespace, contract.RosterPrefix+"harbour"))
	c.Data["edge-1"] = `{"uid":"u-1","replica":"one","hosts":["` + strings.Join(all, `","`) + `"]}`
	d.cluster.store(c)
	d.cluster.drop(liar)
	d.looks()
	if err := d.hub().Refuse(signed); err != nil {
		t.Error(err)
	}
	d.goesOn("edge-1")
}

// TestOthersAddresses: a coordinator's node that claims the addresses of another one's, and got certificates for them,
// is denied when it is deleted, and the other one is not.
func TestOthersAddresses(t *testing.T) {
	for _, first := range []string{"liar", "honest"} {
		t.Run(first, func(t *testing.T) {
			liar, honest := replica("edge-1", "u-1", "10.0.0.1", "10.0.0.2"), replica("edge-2", "u-2", "10.0.0.2")
			d := newDesk(t, newCluster(liar, honest, node("edge-9", "harbour", "u-9")))
			d.looks()
			if first == "honest" {
				must(d.signs(honest, "10.0.0.2"))
			}
			both, stolen := must(d.signs(liar, "10.0.0.1", "10.0.0.2")), must(d.signs(liar, "10.0.0.2"))
			good := must(d.signs(honest, "10.0.0.2"))
			d.cluster.drop(liar)
			d.looks()
			h := d.hub()
			if h.Refuse(both) == nil || h.Refuse(stolen) == nil {
				t.Error("what the liar had counts on")
			}
			if err := h.Refuse(good); err != nil {
				t.Error(err)
			}
			if again := must(d.signs(honest, "10.0.0.2")); again.NotBefore.After(d.clock.Now()) || d.hub().Refuse(again) != nil {
				t.Errorf("the next certificate of the other one begins at %s, %v", again.NotBefore, d.hub().Refuse(again))
			}
			d.goesOn("edge-1")
		})
	}
}

// TestLabelledForAMoment: a certificate that was signed while the Node had the label of a replica, between two looks,
// is denied as well.
func TestLabelledForAMoment(t *testing.T) {
	plain := node("edge-1", "harbour", "u-1")
	d := newDesk(t, newCluster(plain))
	d.looks()
	signed := must(d.signs(replica("edge-1", "u-1"), "10.0.0.1"))
	d.looks()
	d.cluster.drop(plain)
	d.looks()
	if e := d.list().Entries; len(e) != 1 || e[0].Replica != "one" || d.hub().Refuse(signed) == nil {
		t.Errorf("%+v, %v", e, d.hub().Refuse(signed))
	}
}

// TestManyKeys: of a coordinator's node so many certificates are alive as can be denied, and no more are signed. Those
// that have ended make room.
func TestManyKeys(t *testing.T) {
	liar := replica("edge-1", "u-1", "10.0.0.1")
	d := newDesk(t, newCluster(liar))
	d.looks()
	for range trust.MaxKeys {
		must(d.signs(liar, "10.0.0.1"))
	}
	var no *pki.MismatchError
	if _, err := d.signs(liar, "10.0.0.1"); !errors.As(err, &no) || no.Field != "public key" {
		t.Errorf("one more: %v", err)
	}
	d.clock.SetTime(d.clock.Now().Add(pki.Must(pki.Coordinator).Life.Usual + time.Hour))
	d.authority.Signer = must(pki.NewPoolAuthority("harbour", d.clock.Now()))
	last := must(d.signs(liar, "10.0.0.1"))
	d.cluster.drop(liar)
	d.looks()
	if e := d.list().Entries; len(e) != 1 || len(e[0].Keys) != trust.MaxKeys || d.hub().Refuse(last) == nil {
		t.Errorf("%d entries, %v", len(e), d.hub().Refuse(last))
	}
}

// TestOneThatFails: a Node that cannot be read, a line that cannot be read, a grant that cannot be written and a list
// that cannot be read do not keep the others.
func TestOneThatFails(t *testing.T) {
	t.Run("a Node that cannot be read", func(t *testing.T) {
		c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"))
		d := newDesk(t, c)
		d.looks()
		c.drop(node("edge-1", "", ""))
		c.drop(node("edge-2", "", ""))
		c.store(node("edge-3", "harbour", "u-3"))
		c.fails = func(what string) bool { return what == "get Node /edge-1" }
		if err := d.look(); err == nil {
			t.Error("nothing is told")
		}
		if got := d.denied(); !slices.Equal(got, []string{"edge-2"}) ||
			!slices.Contains(d.readers(), "User weir:hub:harbour:edge-3") ||
			slices.Contains(d.readers(), "User weir:hub:harbour:edge-2") {
			t.Errorf("denied %v, readers %v", got, d.readers())
		}
		c.fails = func(string) bool { return false }
		d.looks()
		if got := d.denied(); !slices.Equal(got, []string{"edge-1", "edge-2"}) {
			t.Errorf("then denied %v", got)
		}
	})
	t.Run("a line of the roster", func(t *testing.T) {
		c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"))
		d := newDesk(t, c)
		d.looks()
		roster := must(notes(t.Context(), c, contract.KeyNamespace, contract.RosterPrefix+"harbour"))
		roster.Data["edge-1"] = "{"
		c.store(roster)
		c.drop(node("edge-2", "", ""))
		d.looks()
		if got := d.denied(); !slices.Equal(got, []string{"edge-2"}) ||
			testutil.ToFloat64(d.Metrics.leftOut.WithLabelValues("line")) != 1 {
			t.Errorf("denied %v", got)
		}
		if ok, err := d.Granted(t.Context(), "harbour", node("edge-1", "harbour", "u-1")); !ok || err != nil {
			t.Errorf("it is written anew: %t, %v", ok, err)
		}
	})
	for _, step := range []string{
		"update ConfigMap kube-system/weir-revoked-nodes", "create ConfigMap weir-pki/denylist-harbour",
		"update RoleBinding weir-pki/weir-pool-harbour", "update ClusterRoleBinding /weir:hub:harbour",
	} {
		t.Run(step, func(t *testing.T) {
			c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: contract.ManagerNamespace, Name: contract.RevokedNodes}})
			d := newDesk(t, c)
			d.looks()
			c.drop(node("edge-1", "", ""))
			c.store(node("edge-3", "harbour", "u-3"))
			c.fails = func(what string) bool { return what == step }
			if err := d.look(); err == nil {
				t.Error("nothing is told")
			}
			granting := strings.Contains(step, "RoleBinding")
			joined, err := d.Granted(t.Context(), "harbour", node("edge-3", "harbour", "u-3"))
			if err != nil || joined == granting {
				t.Errorf("a node that joins: granted %t, %v", joined, err)
			}
			denied, barred := len(d.denied()) == 1, d.barred()["edge-1"] != ""
			lost := !slices.Contains(d.readers(), "User weir:hub:harbour:edge-1") &&
				!slices.Contains(d.bound("weir:hub:harbour"), "User weir:hub:harbour:edge-1")
			if done := map[bool]int{true: 1}[denied] + map[bool]int{true: 1}[barred] + map[bool]int{true: 1}[lost]; done != 2 {
				t.Errorf("denied %t, barred %t, grants are gone %t: want all but one", denied, barred, lost)
			}
			c.fails = func(string) bool { return false }
			d.looks()
			if got := d.denied(); !slices.Equal(got, []string{"edge-1"}) || d.barred()["edge-1"] == "" {
				t.Errorf("then denied %v, barred %v", got, d.barred())
			}
		})
	}
}

// TestFullRoster: who finds no room on a roster gets nothing and is told of, and all others go on.
func TestFullRoster(t *testing.T) {
	c := newCluster()
	for i := range MaxNodes + 1 {
		c.store(node(fmt.Sprintf("edge-%04d", i), "harbour", fmt.Sprint("u-", i)))
	}
	d := newDesk(t, c)
	if err := d.look(); err == nil || !strings.Contains(err.Error(), "1 nodes, edge-5000 for one") {
		t.Errorf("it is told that %v", err)
	}
	c.drop(node("edge-0007", "", ""))
	d.looks()
	if got := d.denied(); !slices.Equal(got, []string{"edge-0007"}) {
		t.Errorf("denied %v", got)
	}
	if ok, err := d.Granted(t.Context(), "harbour", node("edge-5000", "harbour", "u-5000")); !ok || err != nil {
		t.Errorf("there is room now: %t, %v", ok, err)
	}
	long := map[string]member{}
	for i := range MaxNodes {
		long[fmt.Sprintf("%0253d", i)] = member{UID: strings.Repeat("u", 36)}
	}
	data, left, err := encode(long, nil)
	size := 0
	for k, v := range data {
		size += len(k) + len(v)
	}
	if err != nil || size > maxRoster || len(data)+len(left) != MaxNodes || len(left) == 0 {
		t.Errorf("of long names %d bytes, %d lines, %d left out, %v", size, len(data), len(left), err)
	}
}

// TestGarbageReturned: what one hub writes into returned-<pool> does not keep what another one gives back from
// counting.
func TestGarbageReturned(t *testing.T) {
	c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"))
	d := newDesk(t, c)
	d.looks()
	stranger := must(pki.NewPoolAuthority("harbour", now))
	sign := func(by *pki.Authority, number uint64, node string) string {
		l := trust.Denylist{
			Pool: "harbour", Number: number, Issued: now, Entries: []trust.Denial{
				{Node: node, UID: "u", Deleted: true, Before: now},
			},
		}
		return string(must(l.Sign(by)))
	}
	garbage := strings.Repeat("{}\n", mostReturned/2)
	for i := range trust.MaxDenylists {
		garbage += sign(stranger, uint64(i), "edge-1")
	}
	back := must(notes(t.Context(), c, contract.KeyNamespace, contract.ReturnedPrefix+"harbour"))
	back.Data = map[string]string{
		contract.DenylistKey: garbage + sign(d.authority.Signer, 7, "edge-7") + sign(d.authority.Signer, 6, "edge-6"),
	}
	c.store(back)
	d.looks()
	if got := d.denied(); !slices.Equal(got, []string{"edge-6", "edge-7"}) {
		t.Errorf("denied %v", got)
	}
	if n := testutil.ToFloat64(d.Metrics.leftOut.WithLabelValues("returned")); n != mostReturned/2+trust.MaxDenylists {
		t.Errorf("%v are counted", n)
	}
}

// TestUnconfirmed: a deletion that nobody has confirmed is told, in the Pool, by Events and by a metric, with what a
// person may do; and it revokes all the same. When it is confirmed, or the Node is there again, nothing is told any
// more. One that was confirmed before is not told of.
func TestUnconfirmed(t *testing.T) {
	c := newCluster(node("edge-1", "harbour", "u-1"), node("edge-2", "harbour", "u-2"), node("edge-3", "harbour", "u-3"),
		node("edge-4", "harbour", "u-4"))
	c.store(&poolv1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "harbour"}})
	d := newDesk(t, c)
	told := func() *metav1.Condition {
		var p poolv1.Pool
		if err := c.Get(t.Context(), types.NamespacedName{Name: "harbour"}, &p); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(p.Status.Conditions, poolv1.DeletionsConfirmed)
	}
	heard := func() (all []string) {
		for len(d.events.Events) > 0 {
			all = append(all, <-d.events.Events)
		}
		return all
	}
	write := func(name, line string) {
		m := must(notes(t.Context(), c, contract.ManagerNamespace, contract.RevokedNodes))
		m.Data = maps.Clone(m.Data)
		if m.Data == nil {
			m.Data = map[string]string{}
		}
		m.Data[name] = line
		if line == "" {
			delete(m.Data, name)
		}
		c.store(m)
	}
	d.looks()
	if told() != nil || len(heard()) > 0 {
		t.Errorf("nothing was deleted: %v", told())
	}
	write("edge-1", Barred{now, "harbour", "u-1", false}.String())
	write("edge-2", Barred{now, "harbour", "another", false}.String()) // of a Node of the name before
	for _, name := range []string{"edge-1", "edge-2", "edge-3"} {
		c.drop(node(name, "", ""))
	}
	d.looks()
	if got := d.denied(); !slices.Equal(got, []string{"edge-1", "edge-2", "edge-3"}) || len(d.barred()) != 3 {
		t.Errorf("denied %v, barred %v", got, d.barred())
	}
	is, all := told(), strings.Join(heard(), "\n")
	const answer = "kubectl weir node restore edge-2 edge-3; if they are lost or stolen: kubectl weir node revoke " +
		"edge-2 edge-3"
	if is == nil || is.Status != metav1.ConditionFalse || is.Reason != DeletedUnconfirmed ||
		!strings.Contains(is.Message, answer) || strings.Contains(is.Message, "edge-1") {
		t.Errorf("the Pool says %+v", is)
	}
	if strings.Count(all, DeletedUnconfirmed) != 3 || !strings.Contains(all, "node edge-2 of pool") ||
		!strings.Contains(all, answer) || strings.Contains(all, "edge-1") {
		t.Errorf("Events: %s", all)
	}
	if n := testutil.ToFloat64(d.Metrics.unconfirmed.WithLabelValues("harbour")); n != 2 {
		t.Errorf("%v are counted", n)
	}
	if d.looks(); len(heard()) > 0 {
		t.Error("it is told twice")
	}
	write("edge-2", Barred{now, "harbour", "u-2", false}.String())
	if d.looks(); strings.Contains(told().Message, "edge-2") {
		t.Errorf("one is confirmed: %s", told().Message)
	}
	c.store(node("edge-3", "harbour", "u-3b"))
	if d.looks(); told() != nil || testutil.CollectAndCount(d.Metrics.unconfirmed) != 0 {
		t.Errorf("all are answered: %v", told())
	}
	if got := d.denied(); !slices.Equal(got, []string{"edge-1", "edge-2", "edge-3"}) {
		t.Errorf("and denied are %v", got)
	}
}
