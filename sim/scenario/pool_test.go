package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// TestPools: pools in the plural are pools beside each other, and a fault happens to the one that it names. One alone
// is the short form.
func TestPools(t *testing.T) {
	text := strings.NewReplacer("{pool: {", "{pools: [{",
		"rtt: 1.5s}}}", "rtt: 1.5s}}, {name: town, nodes: 2, coordinators: 3, uplink: {rate: 1Mbit/s, rtt: 1ms}}, "+
			"{name: farm, nodes: 1, coordinators: 0, uplink: {rate: 1Mbit/s, rtt: 1ms}}]}", "faults:\n", `faults:
  - {at: 1s, action: kill, target: coordinator/3, pool: town, for: 1s}
  - {at: 1s, action: vanish, target: hub/2, pool: town, for: 1s}
  - {at: 1s, action: storm, target: pool, pool: town, for: 20s}
  - {at: 1s, action: kill, target: apiserver, for: 1s}
`).Replace(small)
	s, err := scenario.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
	with := layout.Watching(s, runtime.Weir)
	if err := with.Validate(); err != nil {
		t.Error(err)
	}
	for i, want := range []runtime.Pool{
		{Name: "harbour", Nodes: 3, Mode: runtime.Weir, Coordinators: 1},
		{Name: "town", Nodes: 2, Mode: runtime.Weir, Coordinators: 3, LAN: &runtime.Link{}},
		{Name: "farm", Nodes: 1, Mode: runtime.HubOnly},
	} {
		got := with.Pools[i]
		if got.Name != want.Name || got.Nodes != want.Nodes || got.Mode != want.Mode ||
			got.Coordinators != want.Coordinators || (got.LAN == nil) != (want.LAN == nil) {
			t.Errorf("pool %d: %+v, want %+v", i, got, want)
		}
	}
	for _, p := range layout.Watching(s, runtime.Stock).Pools {
		if p.Mode != runtime.Stock || p.Coordinators != 0 || p.LAN != nil {
			t.Errorf("stock: %+v", p)
		}
	}
	if p := s.PoolOf(s.Faults[0]); p.Name != "town" || p.Uplink.RTT != time.Millisecond {
		t.Errorf("%s happens to %+v", s.Faults[0], p)
	}
	for _, f := range s.Drawn().Faults {
		if want := map[bool]string{true: "", false: "town"}[f.Target == scenario.APIServer]; f.Pool != want {
			t.Errorf("drawn: %s happens to %q, want %q", f, f.Pool, want)
		}
		if n, hub := f.Target.Hub(); hub && n > 2 {
			t.Errorf("drawn: %s happens to a node that town does not have", f)
		}
	}
	one, err := scenario.Parse("",
		[]byte(strings.NewReplacer("{pool: {", "{pools: [{", "rtt: 1.5s}}}", "rtt: 1.5s}}]}").Replace(small)))
	if err != nil || len(one.Topology.More) != 0 || one.Topology.Pool.Name != "harbour" {
		t.Errorf("a list of one: %+v, %v", one, err)
	}
}
