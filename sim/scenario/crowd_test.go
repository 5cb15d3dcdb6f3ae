package scenario_test

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/layout"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// TestCrowd: a crowd is copies of one pool of which some nodes run, and nothing happens to them.
func TestCrowd(t *testing.T) {
	text := strings.NewReplacer("faults:\n", "crowd: {pools: 12, run: 2}\n", "nodes: 3", "nodes: 3, enrols: true",
		"changes: 20, changesPerSecond: 2.5, alone: 6", "changes: 0", "[json, kubectl]", "[json]",
		"[pool_bytes_ratio <= 1.02, hub_rss_bytes_max < 40MB]", "[cloud_watches <= 100]").Replace(small)
	s, err := scenario.Parse("", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	roundTrip(t, s)
	if s.Study.(*scenario.Crowd).Follow != 12 {
		t.Errorf("others run in %d pools, want all", s.Study.(*scenario.Crowd).Follow)
	}
	for mode, manager := range map[runtime.Mode]bool{runtime.Stock: false, runtime.Weir: true} {
		topology := layout.Crowd(s, s.Study.(*scenario.Crowd), mode)
		if err := topology.Validate(); err != nil || len(topology.Pools) != 12 || topology.Pools[11].Name != "harbour-012" ||
			topology.Pools[11].Nodes != 2 ||
			topology.Manager != manager || topology.Described != manager {
			t.Errorf("%s: %+v, %v", mode, topology, err)
		}
	}
	for change, want := range map[string]string{
		"run: 2->run: 1":                              "a whole number from 2 to 5",
		"run: 2->run: 4":                              "topology.pool.nodes is 3",
		"pools: 12->pools: 1000":                      "a whole number from 1 to 200",
		"run: 2->run: 2, follow: 3":                   "",
		"run: 2->run: 2, follow: 13":                  "a whole number from 1 to 12",
		"changes: 0->changes: 0, quiet: 1h":           "",
		"changes: 0->changes: 5, changesPerSecond: 1": "want changes: 0",
		"[json]->[kubectl]":                           "kubectl watches nothing",
		"clients->compare: [stock]\nclients":          "leave it out",
		"clients->faults: [{at: 1s, action: restart, target: leader}]\nclients": "leave it out",
		"cloud_watches->client_relists":                                         "not measured in a scenario with crowd",
		"crowd->autonomy: {}\ncrowd":                                            "want one of them",
	} {
		from, to, _ := strings.Cut(change, "->")
		_, err := scenario.Parse("", []byte(strings.Replace(text, from, to, 1)))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
	if _, err := scenario.Parse("",
		[]byte(strings.Replace(small, "pool_bytes_ratio <= 1.02", "cloud_watches <= 100", 1))); err == nil ||
		!strings.Contains(err.Error(), "want crowd") {
		t.Errorf("without a crowd: %v", err)
	}
}
