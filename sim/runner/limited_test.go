package runner

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// What a runtime cannot do is refused before anything is started, in one line.
func TestARuntimeRefusesWhatItCannotDo(t *testing.T) {
	for file, why := range map[string]string{
		"cloud-restored.yaml":                              "its kube-apiserver is a pod",
		"eviction/cloud-apiserver-restart-delegating.yaml": "its kube-apiserver is a pod",
		"autonomy/offline-machine-restart.yaml":            "its containers are real",
	} {
		all, err := scenario.Load("../../scenarios/" + file)
		if err != nil {
			t.Fatal(err)
		}
		err = Suits(all[0], &runtime.Kind{})
		if err == nil || !strings.Contains(err.Error(), "scenario "+all[0].Name) || !strings.Contains(err.Error(), why) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", file, err)
		}
		if err := Suits(all[0], &runtime.Local{}); err != nil {
			t.Errorf("%s on local: %v", file, err)
		}
	}
	all, err := scenario.Load("../../scenarios/cloud-restored.yaml")
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), all[0], Options{Runtime: &runtime.Kind{}, Dir: t.TempDir()})
	if err == nil || res.Passed || res.Runtime != "kind" {
		t.Errorf("got %v, %v on %q", err, res.Passed, res.Runtime)
	}
}
