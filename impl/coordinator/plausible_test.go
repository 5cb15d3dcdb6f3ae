package coordinator_test

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestHistoryThatCannotFollow: attack 55. A leader that lies about the history of the cloud is not followed, so that
// there is always a next one for the leader that follows. An honest leader that counts from elsewhere goes on from the
// number that the status tells.
func TestHistoryThatCannotFollow(t *testing.T) {
	s := newPool(t).start()
	a, viewer := s.hub("a"), s.viewer()
	leader := leaderRelay(t, 100)
	a.show(leader)
	a.elect("a_1")
	eventually(t, "the list", func() bool { return viewer.reached() == 100 })
	check(t, leader.ReplaceIn(relay.History{Number: 17}, 110, []*wire.Object{slice(t, "one", 100)}))
	eventually(t, "it to be refused", func() bool { return viewer.slices().Feeder == "" })
	if r := viewer.slices(); r.History != 0 || r.Version != 100 {
		t.Errorf("the coordinator is in history %d at %d", r.History, r.Version)
	}
	leader.Renumber(relay.History{Number: 1})
	eventually(t, "the leader's state", func() bool { return a.slices().History == 1 && a.reached() == 110 })
}

// TestFirstHistory: nor is one that nobody can have counted.
func TestFirstHistory(t *testing.T) {
	for number, taken := range map[uint64]bool{1 << 31: true, 1<<31 + 1: false} {
		s := newPool(t).start()
		a, viewer := s.hub("a"), s.viewer()
		leader := leaderRelay(t, 1)
		check(t, leader.ReplaceIn(relay.History{Number: number}, 110, []*wire.Object{slice(t, "one", 100)}))
		x := a.show(leader)
		a.elect("a_1")
		eventually(t, "it to be read", x.read)
		if taken {
			eventually(t, "it to be taken", func() bool { return viewer.reached() == 110 })
			continue
		}
		leader.Renumber(relay.History{Number: 1})
		eventually(t, "one that can be", func() bool { return viewer.slices().History == 1 })
	}
}

// TestHearsayOfAnotherHistory: attack 60, M4. A hub that hears nothing from the cloud brings no other history.
func TestHearsayOfAnotherHistory(t *testing.T) {
	s := newPool(t).start()
	viewer := s.viewer()
	in := func(number, version uint64) *relay.Relay {
		r := leaderRelay(t, 1)
		check(t, r.ReplaceIn(relay.History{Number: number}, version, []*wire.Object{slice(t, "one", version)}))
		return r
	}
	s.hub("liar").tells(in(1<<32, 50))
	s.hub("a").tells(old(t, 100))
	eventually(t, "the only one that can be", func() bool { return viewer.reached() == 100 })
	s.hub("b").tells(in(1, 101))
	s.hub("c").tells(in(1<<32, 9e18))
	s.hub("d").tells(old(t, 102))
	eventually(t, "what is in the history of the relay", func() bool { return viewer.reached() == 102 })
	if h := viewer.slices().History; h != 0 {
		t.Errorf("history %d", h)
	}
	if metrics := viewer.want(200, "GET", "/metrics", ""); strings.Contains(metrics, `refills_total{node="liar"`) {
		t.Error("the liar was heard")
	}
}
