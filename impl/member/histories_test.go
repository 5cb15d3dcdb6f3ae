package member

import (
	"reflect"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

const endpointSlices = "endpointslices.v1.discovery.k8s.io"

// TestVersionsThatNeverWere: attack 56. A coordinator that was fed a version which the cloud has not reached would take
// nothing from an honest leader, and seem to have all. The leader asks the cloud whether it has reached it, after a
// while and then at most as often.
func TestVersionsThatNeverWere(t *testing.T) {
	var h histories
	now := time.Unix(1e9, 0)
	mine := []Relay{{Name: endpointSlices, Status: relay.Status{Synced: true, Version: 1000}}}
	look := func(version uint64, want ...Effect) {
		t.Helper()
		s := &PoolStatus{Resources: []PoolResource{{Resource: endpointSlices, Synced: true, Version: version}}}
		if got := h.look(now, s, mine); !reflect.DeepEqual(got, want) {
			t.Errorf("at %d: %v, want %v", version, got, want)
		}
	}
	look(1005)
	now = now.Add(14 * time.Second)
	look(1005) // a new leader is behind for a moment
	now = now.Add(time.Second)
	look(1005, Verify{endpointSlices, 1005})
	look(1000) // this relay is as far
	look(9e18)
	now = now.Add(15 * time.Second)
	look(9e18, Verify{endpointSlices, 9e18})
	look(9e18)
}

// TestAgree: a coordinator in a later history makes the leader ask the cloud, once for each history and term; one that
// cannot believe in the leader's history makes the leader go on in the next one.
func TestAgree(t *testing.T) {
	h := histories{overruled: map[string]uint64{}}
	for i, c := range []struct {
		theirs, mine relay.History
		want         []Effect
	}{
		{relay.History{Number: 3}, relay.History{Number: 3}, nil},
		{relay.History{Number: 4}, relay.History{Number: 3}, []Effect{Overrule{4}}},
		{relay.History{Number: 4}, relay.History{Number: 3}, nil},
		{relay.History{Number: 5}, relay.History{Number: 3}, []Effect{Overrule{5}}},
		{
			relay.History{Number: 0}, relay.History{Number: 1 << 40},
			[]Effect{Renumber{endpointSlices, relay.History{Number: 0}.Next(1000)}},
		},
	} {
		s := &PoolStatus{
			Resources: []PoolResource{{Resource: endpointSlices, Synced: true, Version: 900, History: c.theirs.Number}},
		}
		var got []Effect
		for _, e := range h.agree(s, []Relay{
			{Name: endpointSlices, Status: relay.Status{Synced: true, Version: 1000, History: c.mine}},
		}) {
			if _, log := e.(Log); !log {
				got = append(got, e)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%d: %v, want %v", i, got, c.want)
		}
	}
}
