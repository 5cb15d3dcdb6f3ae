package command

import (
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/sim/kind"
)

// TestDevValues: the values name each image of the chart by its tag, and none by a digest, whatever the chart says.
func TestDevValues(t *testing.T) {
	type values map[string]struct{ Image map[string]string }
	text := devValues([]kind.Made{
		{Repository: "ghcr.io/weir-edge/weir-installer", Tag: "1234567"}, // a number, if nothing says that it is none
		{Repository: "ghcr.io/weir-edge/weir-coordinator", Tag: "v2"},
		{Repository: "ghcr.io/weir-edge/weir-manager", Tag: "v1"}, {Repository: "ghcr.io/weir-edge/weir-gate", Tag: "v1"},
	})
	var got, chart values
	if err := yaml.UnmarshalStrict([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../charts/weir/values.yaml")
	if err == nil {
		_ = yaml.Unmarshal(data, &chart) // what has no image is of no interest
	}
	named := 0
	for name, v := range chart {
		if v.Image["repository"] == "" {
			continue
		}
		named++
		is := got[name].Image
		digest, there := is["digest"]
		if is["repository"] != v.Image["repository"] || is["tag"] == "" || !there || digest != "" {
			t.Errorf("%s: %v, want repository %s", name, is, v.Image["repository"])
		}
	}
	if named != 4 || len(got) != named {
		t.Errorf("%d images in the chart (%v), %d in %s", named, err, len(got), text)
	}
}
