package coordinator_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
)

// TestLeaderThatLied: two hubs of the pool say that the cloud contradicts the leader. It loses the Lease, cannot take it again while another one may
// want it, and what the coordinator holds of it counts no more until it is listed anew in a later history.
func TestLeaderThatLied(t *testing.T) {
	s := newPool(t).start()
	liar, b, c := s.hub("liar"), s.hub("b"), s.hub("c")
	forged := leaderRelay(t, 100)
	liar.show(forged)
	liar.elect("liar_1")
	eventually(t, "the lie", func() bool {
		return strings.Contains(c.want(http.StatusOK, http.MethodGet, contract.StatusPath, ""), `"version": 100,`)
	})
	const doubt = `{"leader":%q,"resource":%q,"namespace":"default","name":"one","held":100,"confirmed":%t}`
	slices := forged.Resource().String()
	says := func(by *caller, code int, leader string, confirmed bool) {
		t.Helper()
		if got, answer, err := by.do(http.MethodPost, contract.DoubtPath, fmt.Sprintf(doubt, leader, slices, confirmed)); err != nil || got != code {
			t.Errorf("%s: %d %s, %v; want %d", by.node, got, answer, err, code)
		}
	}
	says(s.viewer(), http.StatusForbidden, "liar", true)
	says(b, http.StatusConflict, "liar", false) // of what nobody said
	says(b, http.StatusConflict, "c", true)     // which does not lead
	says(liar, http.StatusConflict, "liar", true)
	if got, answer, _ := b.do(http.MethodPost, contract.DoubtPath, `{"leader":"liar","resource":"pods.v1."}`); got != http.StatusBadRequest {
		t.Errorf("a resource that is not relayed: %d %s", got, answer)
	}
	if got, answer, _ := b.do(http.MethodPost, contract.DoubtPath, strings.Repeat("x", 1<<20)); got != http.StatusBadRequest && got != http.StatusRequestEntityTooLarge {
		t.Errorf("a megabyte: %d %.100s", got, answer)
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

	tries := func(by *caller, holder string) int {
		l, err := by.leases(contract.LeaseNamespace).Get(t.Context(), contract.ElectionLease, metav1.GetOptions{})
		check(t, err)
		body := leaseOf(fmt.Sprintf(`"name":"yurthub","uid":%q,"resourceVersion":%q`, l.UID, l.ResourceVersion), holder, 15)
		code, _, err := by.do(http.MethodPut, leasesPath+"/yurthub", body)
		check(t, err)
		return code
	}
	if code := tries(liar, "liar_2"); code != http.StatusConflict {
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
	if code := tries(liar, "liar_3"); code != http.StatusConflict {
		t.Errorf("the liar takes the Lease after a restart: %d", code)
	}
	if code := tries(c, "c_1"); code != http.StatusOK {
		t.Errorf("another one: %d", code)
	}
}
