package crowd

import (
	"testing"

	"github.com/weir-edge/weir/sim/scenario"
)

// TestExtrapolate: what was open before counts for nobody, the first node of a pool once, and each other node as those
// cost that run, in however many pools they do.
func TestExtrapolate(t *testing.T) {
	s := &scenario.Scenario{Topology: scenario.Topology{Pool: scenario.Pool{Nodes: 20}}}
	about := &scenario.Crowd{Pools: 100, Run: 3, Follow: 20}
	// 40 of the control plane's own, 7 of each first node, 2 of each other; connections likewise.
	all, each := extrapolate(s, about, [3]count{
		{watches: 40}, {watches: 740, connections: 500}, {watches: 820, connections: 580},
	})
	if each.watches != 2 || each.connections != 2 || all.watches != 100*(7+19*2) || all.connections != 100*(5+19*2) {
		t.Errorf("all %+v, each %+v", all, each)
	}
	if n := multiplied(s, about); n != 2000-100-40 {
		t.Errorf("%d nodes are multiplied", n)
	}
}
