package coordinator_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
)

// TestHistoryThatCannotFollow: attack 55. A leader that lies about the history of the cloud is refused, so that there is always a next one for
// the leader that follows. An honest leader that counts from elsewhere is told where to go on.
func TestHistoryThatCannotFollow(t *testing.T) {
	s := newPool(t).start()
	a, viewer := s.hub("a"), s.viewer()
	term := a.elect("a_1")
	path := contract.FeedPath("discovery.k8s.io", "v1", "endpointslices")
	lie := func(history string, code int) {
		t.Helper()
		got, answer, err := a.do(http.MethodPost, path, "", contract.TermHeader, term.String(), rest.HistoryHeader, history)
		if err != nil || got != code || !strings.Contains(answer, "istory") {
			t.Errorf("history %s: %d %s, %v; want %d", history, got, answer, err, code)
		}
	}
	lie("18446744073709551615/0", http.StatusBadRequest)
	lie("1/18446744073709551615", http.StatusBadRequest)
	lie("4294967296/0", http.StatusConflict)

	leader := leaderRelay(t, 100)
	a.push(leader, term)
	eventually(t, "the list", func() bool { return viewer.reached() == 100 })
	lie("17/0", http.StatusConflict)
	if h := a.slices().History; h != 0 {
		t.Errorf("the coordinator is in history %d", h)
	}

	check(t, leader.ReplaceIn(relay.History{Number: 300}, 110, []*wire.Object{slice(t, "one", 100)}))
	var far *source.FarError
	if err := <-a.push(leader, term); !errors.As(err, &far) || far.Number != 0 {
		t.Fatalf("an honest leader that counts from elsewhere: %v", err)
	}
	leader.Renumber(relay.History{Number: far.Number + 1})
	a.push(leader, term)
	eventually(t, "the leader's state", func() bool { return a.slices().History == 1 && a.reached() == 110 })
}

// TestOffersOfAnotherHistory: attack 60, M4. A hub that hears nothing from the cloud brings no other history; who offered is named.
func TestOffersOfAnotherHistory(t *testing.T) {
	s := newPool(t).start()
	a, viewer := s.hub("a"), s.viewer()
	in := func(number, version uint64) *relay.Relay {
		r := leaderRelay(t, 1)
		check(t, r.ReplaceIn(relay.History{Number: number}, version, []*wire.Object{slice(t, "one", version)}))
		return r
	}
	a.refused(in(1<<32, 50), "cannot have been counted")
	check(t, a.offer(old(t, 100)))
	for number, version := range map[uint64]uint64{1: 101, 16: 90, 1 << 32: 9e18} {
		a.refused(in(number, version), fmt.Sprintf("in history 0 of the cloud, not in %d", number))
	}
	if v := viewer.reached(); v != 100 {
		t.Errorf("at %d", v)
	}
}
