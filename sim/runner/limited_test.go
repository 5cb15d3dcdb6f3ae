package runner

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/scenario"
)

// What a runtime cannot do is refused before anything is started, in one line.
func TestARuntimeRefusesWhatItCannotDo(t *testing.T) {
	all, err := scenario.Load("../../scenarios/cloud-restored.yaml")
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(t.Context(), all[0], Options{Runtime: &runtime.Kind{}, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "scenario cloud-restored does not run on kind") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
	if res.Passed || res.Runtime != "kind" {
		t.Errorf("got %v on %q", res.Passed, res.Runtime)
	}
}
