package runner

import (
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/weir-edge/weir/sim/client"
)

// TestTruthNeverCatchesUp: a recorder that proves nothing any more ends the run with the reason. It kept a run waiting
// for ever, after a machine had stood still for longer than kube-apiserver keeps its history.
func TestTruthNeverCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &truth{
			streams: []*client.Stream{
				{Spec: client.Spec{Client: "truth", Resource: client.EndpointSlices}, Recording: &client.Recording{}},
			},
		}
		err := x.catchUp(t.Context(), fake.NewClientset())
		if err == nil || !strings.Contains(err.Error(), "has no list") {
			t.Errorf("the truth without a list: %v", err)
		}
	})
}
