package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/layout"
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
	want := scenario.Study(&scenario.Autonomy{PodsPerNode: 4, Settle: time.Minute})
	if diff := cmp.Diff(want, s.Study, whole); diff != "" {
		t.Errorf("autonomy (-want +got):\n%s", diff)
	}
	if s.Restarts() {
		t.Error("a hub alone is nothing that a stock node has")
	}
	top := layout.Autonomy(s, s.Study.(*scenario.Autonomy), runtime.Stock)
	if p := top.Pools[0]; !p.Kubelets || p.Mode != runtime.Stock || top.Controllers {
		t.Errorf("topology of the stock column: %+v", top)
	}
	for wrong, want := range map[string]string{
		"autonomy: {podsPerNode: 0}":                              "podsPerNode",
		"autonomy: {settle: 11m}":                                 "settle",
		"autonomy: {}\nclients: [json]":                           "leave it out",
		"autonomy: {}\nworkload: {services: 1}":                   "leave it out",
		"autonomy: {}\neviction: {}":                              "want one of them",
		"autonomy: {settle: 1m}\nexpectations: [marks_left == 0]": "not measured in a scenario with autonomy",
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

// TestParseServices: Services lead to pods that get other addresses, and have metrics of their own.
func TestParseServices(t *testing.T) {
	const moved = `name: moved
seed: 7
topology:
  pool: {name: harbour, nodes: 3, uplink: {rate: 8Mbit/s, rtt: 60ms}}
autonomy: {podsPerNode: 4, services: 2, addresses: other}
faults:
  - {at: 1s, action: cut, target: pool, link: cloud, for: 2m}
  - {at: 2s, action: vanish, target: hub/2, for: 1s}
expectations: [moved_seconds_p99 <= 5s, failed_calls <= 100]
`
	s, err := scenario.Parse("moved.yaml", []byte(moved))
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []runtime.Mode{runtime.Stock, runtime.Weir} {
		top := layout.Autonomy(s, s.Study.(*scenario.Autonomy), mode)
		if top.Pools[0].Addresses != runtime.OtherAddresses || !top.Endpoints ||
			!top.Pools[0].Unread {
			t.Errorf("topology of mode %s: %+v", mode, top)
		}
	}
	for _, x := range []struct{ old, wrong, want string }{
		{"services: 2", "services: 5", "no more than podsPerNode"},
		{"services: 2", "services: 2, firstBoot: true", "no firstBoot"},
		{"addresses: other", "addresses: others", "same, other, swapped"},
		{", services: 2", "", "want autonomy.services"},
		{"failed_calls <= 100", "lost_writes == 0", "not measured where Services"},
	} {
		_, err := scenario.Parse("moved.yaml", []byte(strings.Replace(moved, x.old, x.wrong, 1)))
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, want %q", x.wrong, err, x.want)
		}
	}
}
