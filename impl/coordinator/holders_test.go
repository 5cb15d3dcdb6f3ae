package coordinator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// leaseOf is the body of a Lease of the pool.
func leaseOf(meta, holder string, seconds int) string {
	return fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{%s},`+
		`"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d}}`,
		meta, holder, seconds)
}

// TestNobodySeizesTheElection: attacks 50 to 53 of the security review. A hub's key takes the Leases of the pool from
// nobody who lives, for nobody else, and not for ever. Beside each refusal stands what is allowed.
func TestNobodySeizesTheElection(t *testing.T) {
	s := newPool(t).start()
	a, b := s.hub("a"), s.hub("b")
	const election, sync = leasesPath + "/yurthub", leasesPath + "/leader-informer-sync"
	now := func(name string) string {
		t.Helper()
		l, err := a.leases(contract.LeaseNamespace).Get(t.Context(), name, metav1.GetOptions{})
		check(t, err)
		return fmt.Sprintf(`"name":%q,"uid":%q,"resourceVersion":%q`, name, l.UID, l.ResourceVersion)
	}
	try := func(code int, body string) {
		t.Helper()
		if got, answer, err := b.do(http.MethodPost, leasesPath, body); err != nil || got != code {
			t.Errorf("%d %s, %v; want %d", got, answer, err, code)
		}
	}
	try(http.StatusForbidden, leaseOf(`"name":"yurthub"`, "ghost_1", 15))
	try(http.StatusForbidden, leaseOf(`"name":"leader-informer-sync"`, "b_1", 30))
	a.elect("a_1")
	_, _, err := a.do(http.MethodPost, leasesPath, leaseOf(`"name":"leader-informer-sync"`, "a_1", 30))
	check(t, err)

	for _, c := range []struct {
		name         string
		by           *caller
		method, path string
		meta, holder string
		seconds      int
		code         int
		says         string
	}{
		{"50: a ghost for ever", b, "PUT", election, "", "ghost_1", 2147483647, 422, "at most 60"},
		{"50: the leader for ever", a, "PUT", election, "", "a_1", 61, 422, "at most 60"},
		{"50: a ghost", b, "PUT", election, "", "ghost_1", 15, 403, "want b_"},
		{"50: the leader writes a ghost", a, "PUT", election, "", "ghost_1", 15, 403, "want a_"},
		{"51: fresh for ever", b, "PUT", sync, "", "b_1", 2147483647, 422, "at most 60"},
		{"51: fresh by who does not lead", b, "PUT", sync, "", "b_1", 30, 403, `is \"a\"`},
		{"51: fresh in the leader's name", b, "PUT", sync, "", "a_1", 30, 403, "want b_"},
		{"51: fresh by nobody", a, "PUT", sync, "", "", 30, 403, "want a_"},
		{"52: another's live Lease", b, "PUT", election, "", "b_1", 15, 409, "a_1 holds it"},
		{"52: given back for another", b, "PUT", election, "", "", 15, 409, "a_1 holds it"},
		{"52: deleted", b, "DELETE", election, "", "", 0, 403, "deletes nothing"},
		{"52: deleted by its holder", a, "DELETE", election, "", "", 0, 403, "deletes nothing"},
		{"52: a finalizer", a, "PUT", election, `"finalizers":["x.io/y"],`, "a_1", 15, 403, "finalizers"},
		{
			"L8: an owner", a, "PUT", election, `"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"a","uid":"u"}],`,
			"a_1", 15, 403, "ownerReferences",
		},
		{"L8: a label", a, "PUT", election, `"labels":{"x":"y"},`, "a_1", 15, 403, "labels"},
		{"L8: an annotation", a, "PUT", sync, `"annotations":{"x":"y"},`, "a_1", 30, 403, "annotations"},
		{"an operator is no holder", s.operator(), "PUT", election, "", "eve_1", 15, 403, "only clears"},

		{"the leader renews", a, "PUT", election, "", "a_1", 15, 200, ""},
		{"the leader's next process", a, "PUT", election, "", "a_2", 15, 200, ""},
		{"the leader is fresh", a, "PUT", sync, "", "a_2", 30, 200, ""},
		{"the leader gives it back", a, "PUT", election, "", "", 1, 200, ""},
		{"another takes it", b, "PUT", election, "", "b_1", 15, 200, ""},
		{"another is fresh", b, "PUT", sync, "", "b_1", 30, 200, ""},
		{"an operator clears it", s.operator(), "PUT", election, "", "", 15, 200, ""},
		{"an operator deletes freshness", s.operator(), "DELETE", sync, "", "", 0, 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := ""
			if c.method != http.MethodDelete {
				body = leaseOf(c.meta+now(c.path[strings.LastIndex(c.path, "/")+1:]), c.holder, c.seconds)
			}
			if got, answer, err := c.by.do(c.method, c.path, body); err != nil || got != c.code ||
				!strings.Contains(answer, c.says) {
				t.Errorf("%d %s, %v; want %d and %q", got, answer, err, c.code, c.says)
			}
		})
	}
}

// TestLeaseOfANode: attack 53 and L8, for the Lease that a hub has for its node.
func TestLeaseOfANode(t *testing.T) {
	const nodeLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	a := newPool(t).start().hub("a")
	owner := `"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":%q,"uid":"u"}]`
	for _, c := range []struct {
		meta string
		code int
	}{
		{`"name":"b"`, http.StatusForbidden},
		{`"generateName":"b"`, http.StatusForbidden},
		{`"name":"a","finalizers":["x.io/y"]`, http.StatusForbidden},
		{`"name":"a","labels":{"x":"y"}`, http.StatusForbidden},
		{`"name":"a","annotations":{"x":"y"}`, http.StatusForbidden},
		{`"name":"a",` + fmt.Sprintf(owner, "b"), http.StatusForbidden},
		{
			`"name":"a","labels":{"openyurt.io/delegate-heartbeat":"true"},` +
				`"annotations":{"openyurt.io/delegate-heartbeat":"true"},` + fmt.Sprintf(owner, "a"), http.StatusCreated,
		},
	} {
		if got, answer, err := a.do(http.MethodPost, nodeLeases, leaseOf(c.meta, "a", 40)); err != nil || got != c.code {
			t.Errorf("%s: %d %s, %v; want %d", c.meta, got, answer, err, c.code)
		}
	}
}

// TestElectionExpiresByTheCoordinatorsClock: a Lease is free when the coordinator has seen no renewal for its duration.
// After a restart it waits for a whole duration: it cannot know what it did not see.
func TestElectionExpiresByTheCoordinatorsClock(t *testing.T) {
	const nearly = contract.MaxLeaseDuration - time.Second
	p, c := newPool(t), &later{}
	p.config.Clock = c
	s := p.start()
	a, b := s.hub("a"), s.hub("b")
	take := func(by *caller, holder string) error {
		t.Helper()
		leases := by.leases(contract.LeaseNamespace)
		l, err := leases.Get(t.Context(), contract.ElectionLease, metav1.GetOptions{})
		check(t, err)
		past := metav1.NewMicroTime(time.Unix(1e9, 0))
		l.Spec.HolderIdentity, l.Spec.RenewTime = &holder, &past // what a clock of another machine says is ignored
		_, err = leases.Update(t.Context(), l, metav1.UpdateOptions{})
		return err
	}
	held := func(when string) {
		t.Helper()
		if err := take(b, "b_1"); !apierrors.IsConflict(err) {
			t.Fatalf("%s another takes it: %v", when, err)
		}
	}
	// A leader that is not read by then would lose the Lease for that.
	read := func() { t.Helper(); eventually(t, "the leader to be read", a.shows.read) }
	a.elect("a_1")
	held("just acquired,")
	read()
	c.pass(nearly)
	held("a second before its end,")
	check(t, take(a, "a_1"))
	c.pass(nearly)
	held("a second before its end, renewed,")

	s.stop()
	eventually(t, "the leader not to be read", func() bool { return !a.shows.read() })
	s = p.start()
	b = s.hub("b")
	held("after a restart")
	read()
	c.pass(nearly)
	held("a second before its end, after a restart,")
	c.pass(time.Second)
	check(t, take(b, "b_1"))
	if h := s.viewer().holder(); h != "b_1" {
		t.Errorf("%q holds it", h)
	}
}
