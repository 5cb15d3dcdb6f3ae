package coordinator_test

import (
	"net/http"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
)

// TestReverse: a coordinator reads a leader to which it cannot connect over the connection that the leader's hub has
// opened. What it demands of the hub, and what becomes of a leader that is silent, is the same.
func TestReverse(t *testing.T) {
	s := newPool(t).start()
	a, b, viewer := s.hub("a"), s.hub("b"), s.viewer()
	s.as("").want(http.StatusUnauthorized, http.MethodPost, contract.LinePath, "")
	viewer.want(http.StatusForbidden, http.MethodPost, contract.LinePath, "")
	a.want(http.StatusBadRequest, http.MethodPost, contract.LinePath, "") // over HTTP/2

	x := s.showBack("a", leaderRelay(t, 100))
	a.electAt("a_1", contract.PoolAddressReverse)
	eventually(t, "the leader to be read", func() bool { return viewer.reached() == 100 && viewer.slices().Feeder == "a" })
	x.readAgain(viewer, "a_1")
	x.freeze()
	eventually(t, "a silent leader to lose the Lease", func() bool { return viewer.holder() == "" })

	// Nobody has connected for b but c.
	s.showBack("c", leaderRelay(t, 200))
	b.electAt("b_1", contract.PoolAddressReverse)
	eventually(t, "the Lease to be free again", func() bool { return viewer.holder() == "" })
	if v := viewer.reached(); v != 100 {
		t.Errorf("at %d", v)
	}
}
