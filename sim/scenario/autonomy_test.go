package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// alone is a scenario with autonomy that is right.
const alone = `name: alone
seed: 7
topology:
  pool: {name: harbour, nodes: 3, uplink: {rate: 8Mbit/s, rtt: 60ms}}
autonomy: {podsPerNode: 4, settle: 1m}
faults:
  - {at: 1s, action: cut, target: pool, link: cloud, for: 2m}
  - {at: 2s, action: kill, target: hub/2, for: 1s, disk: torn}
  - {at: 3s, action: exit, target: pool, repeat: 2}
  - {at: 4s, action: expire, target: pool, for: 1m}
  - {at: 9s, action: attempt, target: kubelet/1}
expectations: [lost_writes == 0, wrong_attempts == 0]
`

func TestParseAutonomy(t *testing.T) {
	s, err := scenario.Parse("alone.yaml", []byte(alone))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&scenario.Autonomy{PodsPerNode: 4, Settle: time.Minute}, s.Autonomy); diff != "" {
		t.Errorf("autonomy (-want +got):\n%s", diff)
	}
	if s.Restarts() {
		t.Error("a hub alone is nothing that a stock node has")
	}
	top := s.AutonomyTopology(runtime.Stock)
	if p := top.Pools[0]; !p.Kubelets || p.Mode != runtime.Stock || top.Controllers {
		t.Errorf("topology of the stock column: %+v", top)
	}
	for wrong, want := range map[string]string{
		"autonomy: {podsPerNode: 0}":                         "podsPerNode",
		"autonomy: {settle: 11m}":                            "settle",
		"autonomy: {}\nclients: [json]":                      "leave it out",
		"autonomy: {}\nworkload: {services: 1}":              "leave it out",
		"autonomy: {}\neviction: {}":                         "want one of them",
		"autonomy: {settle: 1m}\nexpectations: [calls == 0]": "not measured in a scenario with autonomy",
	} {
		text := alone
		if strings.Contains(wrong, "expectations") {
			text, _, _ = strings.Cut(text, "expectations")
		}
		_, err := scenario.Parse("alone.yaml",
			[]byte(strings.Replace(text, "autonomy: {podsPerNode: 4, settle: 1m}", wrong, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", wrong, err, want)
		}
	}
}
