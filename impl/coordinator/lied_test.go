package coordinator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// says tells the coordinator what a hub found when it compared a slice with the cloud.
func (c *caller) says(resource string, code int, leader string, confirmed bool) {
	c.t.Helper()
	const doubt = `{"leader":%q,"resource":%q,"namespace":"default","name":"one","held":100,"confirmed":%t}`
	if got, answer, err := c.do(http.MethodPost, contract.DoubtPath,
		fmt.Sprintf(doubt, leader, resource, confirmed)); err != nil || got != code {
		c.t.Errorf("%s: %d %s, %v; want %d", c.node, got, answer, err, code)
	}
}

// tries tries to take the election Lease, over what there is.
func (c *caller) tries(holder string) int {
	c.t.Helper()
	l, err := c.leases(contract.LeaseNamespace).Get(c.t.Context(), contract.ElectionLease, metav1.GetOptions{})
	check(c.t, err)
	body := leaseOf(fmt.Sprintf(`"name":"yurthub","uid":%q,"resourceVersion":%q`, l.UID, l.ResourceVersion), holder, 15)
	code, _, err := c.do(http.MethodPut, leasesPath+"/yurthub", body)
	check(c.t, err)
	return code
}

// TestLeaderThatLied: two hubs of the pool say that the cloud contradicts the leader. It loses the Lease, cannot take
// it again while another one may want it, and what the coordinator holds of it is no longer valid until it is listed
// again in a later history.
func TestLeaderThatLied(t *testing.T) {
	s := newPool(t).start()
	liar, b, c := s.hub("liar"), s.hub("b"), s.hub("c")
	forged := leaderRelay(t, 100)
	liar.show(forged)
	liar.elect("liar_1")
	eventually(t, "the lie", func() bool {
		return strings.Contains(c.want(http.StatusOK, http.MethodGet, contract.StatusPath, ""), `"version": 100,`)
	})
	slices := forged.Resource().String()
	says := func(by *caller, code int, leader string, confirmed bool) { by.says(slices, code, leader, confirmed) }
	says(s.viewer(), http.StatusForbidden, "liar", true)
	says(b, http.StatusConflict, "liar", false) // of what nobody said
	says(b, http.StatusConflict, "c", true)     // which does not lead
	says(liar, http.StatusConflict, "liar", true)
	if got, answer, _ := b.do(http.MethodPost, contract.DoubtPath, `{"leader":"liar","resource":"pods.v1."}`); got !=
		http.StatusBadRequest {
		t.Errorf("a resource that is not relayed: %d %s", got, answer)
	}
	if got, answer, _ := b.do(http.MethodPost, contract.DoubtPath, strings.Repeat("x", 1<<20)); got !=
		http.StatusBadRequest && got != http.StatusRequestEntityTooLarge {
		t.Errorf("a megabyte: %d %.100s", got, answer)
	}
	liar.state()
	b.state()
	if n := s.viewer().state().Hubs; n != 3 { // c has asked before
		t.Errorf("three hubs that ask are counted as %d", n)
	}
	if d := b.state().Doubt; d != nil {
		t.Errorf("%+v is asked", d)
	}
	says(b, http.StatusOK, "liar", true)
	if d := c.state().Doubt; d == nil || d.Leader != "liar" || d.Name != "one" || d.Held != 100 || d.Confirmed {
		t.Errorf("%+v is asked", d)
	}
	if l := c.state().Leader; l != "liar" {
		t.Errorf("the word of one hub is enough: %q leads", l)
	}
	says(c, http.StatusOK, "liar", true)
	eventually(t, "the liar to lose the Lease", func() bool { return c.state().Leader == "" })

	if code := liar.tries("liar_2"); code != http.StatusConflict {
		t.Errorf("the liar takes the Lease again: %d", code)
	}
	honest := leaderRelay(t, 90)
	b.show(honest)
	b.elect("b_1")
	st := b.state()
	at := func() resourceState {
		for _, r := range b.state().Resources {
			if r.Resource == slices {
				return r
			}
		}
		t.Fatal("no slices")
		return resourceState{}
	}
	if r := at(); st.Ready || r.Ready || r.History != 1 {
		t.Errorf("what the liar fed counts: %+v, ready %t", r, st.Ready)
	}
	h := honest.Status().History.Next(100)
	honest.Renumber(h)
	eventually(t, "the honest state", func() bool { r := at(); return r.Version == 90 && r.History == 1 && r.Ready })

	s.stop() // a restart forgets nothing
	s = s.pool.start()
	liar, c = s.hub("liar"), s.hub("c")
	s.clear()
	if code := liar.tries("liar_3"); code != http.StatusConflict {
		t.Errorf("the liar takes the Lease after a restart: %d", code)
	}
	if code := c.tries("c_1"); code != http.StatusOK {
		t.Errorf("another one: %d", code)
	}
}

// TestLeaderThatLiedToReplicas: hubs tell two of three replicas, the leader uses the third. All decide as one: it loses
// the Lease, and takes it at none of them, whichever replica dies. One of those that die led etcd.
func TestLeaderThatLiedToReplicas(t *testing.T) {
	all := trio(t)
	for _, r := range all {
		r.run()
	}
	for _, r := range all {
		r.healthy()
	}
	one, two, three := all[0], all[1], all[2]
	liar := one.hub("liar")
	forged := leaderRelay(t, 100)
	slices := forged.Resource().String()
	liar.show(forged)
	liar.elect("liar_1")
	for _, r := range all {
		eventually(t, "replica "+r.name+" to have the lie",
			func() bool { return r.viewer().state().Leader == "liar" && r.hub("x").reached() == 100 })
	}
	two.hub("b").says(slices, http.StatusOK, "liar", true)
	for _, r := range all {
		eventually(t, "replica "+r.name+" to ask others", func() bool {
			d := r.viewer().state().Doubt
			return d != nil && d.Leader == "liar" && d.Name == "one"
		})
		if l := r.viewer().state().Leader; l != "liar" {
			t.Errorf("replica %s: the word of one hub is enough: %q leads", r.name, l)
		}
	}
	three.hub("c").says(slices, http.StatusOK, "liar", true)
	for _, r := range all {
		eventually(t, "the liar to lose the Lease at replica "+r.name,
			func() bool { s := r.viewer().state(); return s.Leader == "" && s.Doubt == nil })
	}
	for i, dead := range all {
		dead.kill()
		survivors := []*replica{all[(i+1)%3], all[(i+2)%3]}
		for _, r := range survivors {
			eventually(t, "replica "+r.name+" to be healthy", func() bool {
				code, _, err := r.as("").do(http.MethodGet, "/healthz", "")
				return err == nil && code == http.StatusOK
			})
		}
		survivors[0].clear() // nobody has it, since now
		for _, r := range survivors {
			if code := r.hub("liar").tries("liar_2"); code != http.StatusConflict {
				t.Errorf("without replica %s the liar takes the Lease at %s: %d", dead.name, r.name, code)
			}
		}
		dead.run()
		dead.healthy()
		if code := dead.hub("liar").tries("liar_3"); code != http.StatusConflict {
			t.Errorf("the liar takes the Lease at replica %s, which was started again: %d", dead.name, code)
		}
	}
	if code := three.hub("c").tries("c_1"); code != http.StatusOK {
		t.Errorf("another one: %d", code)
	}
}
