package manager

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

// TestStands: what somebody else writes into a list is seen by its watch. A list that may not be watched is as usual.
func TestStands(t *testing.T) {
	d := verdict.Decision{
		Nodes: map[string]verdict.Verdict{"n": {Pool: "p"}}, Record: verdict.Record{Kept: []string{"n"}},
	}
	for _, c := range []struct {
		is     string
		kept   map[string]string
		gone   bool
		usual  bool
		stands bool
	}{
		{"as decided", map[string]string{"n": "p"}, false, false, true},
		{"another name", map[string]string{"n": "p", "m": "p"}, false, true, false},
		{"empty", nil, false, true, false},
		{"not readable, a moment ago", nil, true, true, true},
		{"not readable, long ago", nil, true, false, false},
	} {
		s := &shelf{objects: map[string]client.Object{}}
		s.objects[keyOn(&corev1.ConfigMap{}, contract.BoundNodes)] = &corev1.ConfigMap{}
		if !c.gone {
			s.objects[keyOn(&corev1.ConfigMap{}, contract.KeptNodes)] = &corev1.ConfigMap{Data: c.kept}
		}
		if got := (&keeper{watched: s}).stands(t.Context(), d, c.usual); got != c.stands {
			t.Errorf("%s: stands %v", c.is, got)
		}
	}
}
