package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// silent is a scenario with eviction that is right.
const silent = `name: silent
seed: 7
topology:
  pool: {name: harbour, nodes: 3, uplink: {rate: 8Mbit/s, rtt: 60ms}}
  beside: {name: town, nodes: 2}
  zoneless: true
eviction: {timers: fast, podsPerNode: 2, watch: 3m, policy: keep, calls: true}
faults:
  - {at: 1s, action: cut, target: pool, link: cloud, for: 2m}
  - {at: 1s, action: cut, target: followers, link: cloud, for: 2m}
  - {at: 2s, action: kill, target: kubelet/2, for: 10s, repeat: 2}
  - {at: 1m, action: policy, target: pool, policy: evict after 1m30s}
expectations: [stock_evictions >= 1, wrong_evictions == 0, failed_calls == 0]
`

func TestParseEviction(t *testing.T) {
	s, err := scenario.Parse("silent.yaml", []byte(silent))
	if err != nil {
		t.Fatal(err)
	}
	want := &scenario.Eviction{Timers: scenario.FastTimers, PodsPerNode: 2, Watch: 3 * time.Minute, Calls: true}
	if diff := cmp.Diff(scenario.Study(want), s.Study, whole); diff != "" {
		t.Errorf("eviction (-want +got):\n%s", diff)
	}
	policy := scenario.Policy{Evict: true, After: 90 * time.Second}
	faults := []scenario.Fault{
		{
			At: time.Second, Kind: &scenario.Cut{}, Target: scenario.WholePool, Link: scenario.CloudLink, Direction: link.Both,
			For: 2 * time.Minute, Repeat: 1,
		},
		{
			At: time.Second, Kind: &scenario.Cut{}, Target: scenario.Followers, Link: scenario.CloudLink, Direction: link.Both,
			For: 2 * time.Minute, Repeat: 1,
		},
		{At: 2 * time.Second, Kind: &scenario.Kill{}, Target: scenario.Kubelet(2), For: 10 * time.Second, Repeat: 2},
		{At: time.Minute, Kind: &scenario.SetPolicy{Policy: policy}, Target: scenario.WholePool, Repeat: 1},
	}
	if diff := cmp.Diff(faults, s.Faults, whole); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	roundTrip(t, s)
	for _, mode := range []runtime.Mode{runtime.Stock, runtime.Weir} {
		x := layout.Eviction(s, s.Study.(*scenario.Eviction), mode)
		if err := x.Validate(); err != nil {
			t.Error(err)
		}
		if p := x.Pools; len(p) != 2 || p[0].Mode != mode || p[1].Mode != runtime.Stock || !p[0].Kubelets || !p[1].Zoneless ||
			!x.Controllers {
			t.Errorf("column %s: %+v", mode, x)
		}
		if x.Timers != cloud.StockTimers().Faster(2.5) {
			t.Errorf("timers %+v", x.Timers)
		}
	}
}

// TestStockIsStated: a scenario with eviction says what stock Kubernetes evicts.
func TestStockIsStated(t *testing.T) {
	_, err := scenario.Parse("silent.yaml", []byte(strings.Replace(silent, "stock_evictions >= 1, ", "", 1)))
	if err == nil || !strings.Contains(err.Error(), "stock_evictions") {
		t.Errorf("got %v", err)
	}
}
