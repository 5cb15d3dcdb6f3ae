package pulls

import (
	"maps"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/sim/runner"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a pool of two nodes. One gets the image, then the uplink is cut, and the other one wants it.
const small = `name: small
seed: 11
topology: {pool: {name: harbour, nodes: 2, uplink: {rate: 80Mbit/s, rtt: 2ms}}}
images: {layers: [3MB, 1MB], pulls: [{at: 0s, nodes: [1]}, {at: 25s, nodes: [2]}], within: 2m}
faults: [{at: 15s, action: cut, target: pool, link: cloud, for: 30s}]
expectations: [image_bytes_ratio <= 1.05, stock_image_bytes_ratio >= 1.9]
`

// TestRun: with a real control plane, registry, containerds and hubs, two stock nodes cost two pulls, and the second
// gets its image when the link is back. With Weir it is one pull, and the second has its image while the link is cut.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("a site with kubelets runs twice")
	}
	s, err := scenario.Parse("", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(t.TempDir(), "logs")
	res, err := Run(t.Context(), s, runner.Options{
		Runtime: &runtime.Local{LogDir: logs}, Dir: t.TempDir(), Progress: func(m string) { t.Log(m) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !res.Passed {
		t.Errorf("%+v", res.Expectations)
	}
	want := map[string]float64{
		"image_nodes": 2, "stock_image_nodes": 2, "image_nodes_offline": 1, "stock_image_nodes_offline": 0,
		"late_heartbeats": 0,
	}
	got := maps.Clone(res.Metrics)
	maps.DeleteFunc(got, func(name string, _ float64) bool { _, ok := want[name]; return !ok })
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if r := res.Metrics["stock_image_bytes_ratio"]; r > 2.05 {
		t.Errorf("two pulls crossed %.3f times", r)
	}
}
