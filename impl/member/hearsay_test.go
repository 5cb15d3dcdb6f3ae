package member

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay"
)

// TestLatest: a relay moves forward only, in its own history. One that holds nothing takes the latest that can have
// been counted.
func TestLatest(t *testing.T) {
	holds := func(version, history uint64) relay.Status {
		return relay.Status{Synced: true, Version: version, History: relay.History{Number: history}}
	}
	says := func(node string, version, history uint64) Offer {
		return Offer{Node: node, Synced: true, Version: version, History: history}
	}
	empty, denied := says("empty", 200, 1), says("denied", 200, 1)
	empty.Synced, denied.Denied = false, true
	for _, c := range []struct {
		name string
		has  relay.Status
		said []Offer
		want string // the node that is believed, "" for nobody
	}{
		{name: "nobody says anything", has: holds(100, 1)},
		{
			name: "the latest", has: holds(100, 1), said: []Offer{says("a", 110, 1), says("b", 130, 1), says("c", 120, 1)},
			want: "b",
		},
		{name: "what it holds already", has: holds(100, 1), said: []Offer{says("a", 100, 1)}},
		{name: "what is older", has: holds(100, 1), said: []Offer{says("a", 99, 1)}},
		{name: "a later history", has: holds(100, 1), said: []Offer{says("a", 200, 2)}},
		{name: "an earlier history", has: holds(100, 1), said: []Offer{says("a", 200, 0)}},
		{name: "who holds nothing, or was denied it", has: holds(100, 1), said: []Offer{empty, denied}},
		{name: "an empty relay takes the latest history", said: []Offer{says("a", 200, 1), says("b", 50, 2)}, want: "b"},
		{name: "and the latest of that", said: []Offer{says("a", 200, 1), says("b", 50, 2), says("c", 60, 2)}, want: "c"},
		{
			name: "but none that nobody can have counted", said: []Offer{says("a", 5, math.MaxUint64), says("b", 4, 1)},
			want: "b",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			if best := Latest(c.has, c.said); best != nil {
				got = best.Node
			}
			if got != c.want {
				t.Errorf("node %q is believed, want %q", got, c.want)
			}
		})
	}
}

// TestRounds: rounds that bring nothing become rarer, up to a limit.
func TestRounds(t *testing.T) {
	var r Rounds
	var got []time.Duration
	for i := range 7 {
		if got = append(got, r.Wait()/time.Second); i == 5 {
			r.Came()
		}
	}
	if want := []time.Duration{2, 4, 8, 16, 30, 30, 2}; !slices.Equal(got, want) {
		t.Errorf("pauses of %d s, want %d", got, want)
	}
}
