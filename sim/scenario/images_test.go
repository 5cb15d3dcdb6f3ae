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

const pulling = `name: small
seed: 7
topology: {pool: {name: harbour, nodes: 3, uplink: {rate: 8Mbit/s, rtt: 60ms}}}
images:
  layers: [25MB, 4100B, 1500kB]
  pulls: [{at: 0s, nodes: [2]}, {at: 1m, nodes: [1, 3]}]
  within: 90s
faults: [{at: 5s, action: kill, target: puller, for: 2s}, {at: 9s, action: cut, target: pool, link: cloud, for: 2s}]
expectations: [image_bytes_ratio <= 1.02, late_heartbeats == 0, stock_image_nodes_offline == 0]
`

// TestImages: sizes, and who pulls when, are read as they are written, and all nodes pull at once by default.
func TestImages(t *testing.T) {
	s, err := scenario.Parse("", []byte(pulling))
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
	want := &scenario.Images{
		Layers: []scenario.Size{25_000_000, 4100, 1_500_000}, Within: 90 * time.Second,
		Pulls: []scenario.Pull{{Nodes: []int{2}}, {At: time.Minute, Nodes: []int{1, 3}}},
	}
	if diff := cmp.Diff(scenario.Study(want), s.Study, whole); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
	if s.Faults[0].Target != scenario.Puller {
		t.Errorf("the fault happens to %s", s.Faults[0].Target)
	}
	for _, mode := range []runtime.Mode{runtime.Stock, runtime.Weir} {
		topology := layout.Images(s, s.Study.(*scenario.Images), mode)
		if err := topology.Validate(); err != nil || len(topology.Images) != 1 || !topology.Pools[0].Kubelets ||
			topology.Pools[0].Mode != mode || topology.Images[0].Layers[1] != 4100 {
			t.Errorf("%s: %+v, %v", mode, topology, err)
		}
	}
	pulls := "  pulls: [{at: 0s, nodes: [2]}, {at: 1m, nodes: [1, 3]}]\n"
	all, err := scenario.Parse("", []byte(strings.Replace(pulling, pulls, "", 1)))
	if err != nil || !cmp.Equal(all.Study.(*scenario.Images).Pulls, []scenario.Pull{{Nodes: []int{1, 2, 3}}}) {
		t.Errorf("by default: %+v, %v", all, err)
	}
}

// TestImagesMistakes: what a scenario with images cannot be is refused, with what is allowed.
func TestImagesMistakes(t *testing.T) {
	for change, want := range map[string]string{
		"25MB->25":                                              "a size from 4096B to 4294967296B",
		"25MB->25MiB":                                           "a size from 4096B",
		"25MB->1.0000001kB":                                     "a size from 4096B",
		"[25MB, 4100B, 1500kB]->[]":                             "1 to 20 layers",
		"nodes: [2]->nodes: [4]":                                "a whole number from 1 to 3",
		"nodes: [2]->nodes: [1]":                                "names node 1 already",
		"nodes: [2]->nodes: []":                                 "a list of numbers of nodes",
		"at: 1m->at: 90m":                                       "a duration from 0s to 1h0m0s",
		"within: 90s->within: 0s":                               "a duration from 1s to 2h0m0s",
		"images:->clients: [json]\nimages:":                     "nobody lists or watches",
		"images:->autonomy: {}\nimages:":                        "want one of them",
		"images:->compare: [reference]\nimages:":                "one of stock",
		"images:->compare: []\nimages:":                         "needs the stock way",
		"target: puller->target: leader":                        "one of puller, hub/1 to hub/3, coordinator",
		"link: cloud->link: both":                               "want link: cloud",
		"image_bytes_ratio->pool_bytes_ratio":                   "not measured in a scenario with images",
		"action: cut, target: pool->action: cut, target: hub/1": "while the uplink is cut",
	} {
		from, to, _ := strings.Cut(change, "->")
		_, err := scenario.Parse("", []byte(strings.Replace(pulling, from, to, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", change, err, want)
		}
	}
	_, err := scenario.Parse("", []byte(strings.Replace(small, "pool_bytes_ratio", "image_bytes_ratio", 1)))
	if err == nil || !strings.Contains(err.Error(), "want images:") {
		t.Errorf("without images: %v", err)
	}
}
