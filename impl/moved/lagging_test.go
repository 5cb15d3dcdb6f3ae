package moved

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestLagging: a node goes on to say of a pod what the cloud knows by now, as long as slices or its own last statement
// say otherwise.
func TestLagging(t *testing.T) {
	v4 := func(text string) *discoveryv1.EndpointSlice { return sliceOf("web", discoveryv1.AddressTypeIPv4, text) }
	v6 := func(text string) *discoveryv1.EndpointSlice {
		return sliceOf("web-6", discoveryv1.AddressTypeIPv6, text)
	}
	old := func(ip string) *corev1.Endpoints {
		e := point("p@a " + ip + " rs")
		return &corev1.Endpoints{Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{
			{IP: ip, NodeName: e.NodeName, TargetRef: e.TargetRef},
		}}}}
	}
	const now = "p=10.0.0.9,fd00::9"
	for name, c := range map[string]struct {
		slices    []*discoveryv1.EndpointSlice
		endpoints []*corev1.Endpoints
		said      string
		node      string // "": a
		done      bool   // the cloud had the time to write slices
		want      string
	}{
		"no slice has it": {slices: []*discoveryv1.EndpointSlice{v4("q@a 10.0.0.1 rs")}},
		"all say the same": {
			slices:    []*discoveryv1.EndpointSlice{v4("p@a 10.0.0.9 rs"), v6("p@a fd00::9 rs")},
			endpoints: []*corev1.Endpoints{old("10.0.0.9")},
		},
		"a slice is behind": {slices: []*discoveryv1.EndpointSlice{v4("p@a 10.0.0.1 rs")}, want: now},
		"the other family is behind": {
			slices: []*discoveryv1.EndpointSlice{v4("p@a 10.0.0.9 rs"), v6("p@a fd00::1 rs")}, want: now,
		},
		"it is not ready there yet":  {slices: []*discoveryv1.EndpointSlice{v4("p@a 10.0.0.9 -")}, want: now},
		"Endpoints are behind":       {endpoints: []*corev1.Endpoints{old("10.0.0.1")}, want: now},
		"it is another node's there": {slices: []*discoveryv1.EndpointSlice{v4("p@b 10.0.0.1 rs")}},
		"another node's pod":         {slices: []*discoveryv1.EndpointSlice{v4("p@b 10.0.0.1 rs")}, node: "b"},
		"the cloud had time":         {slices: []*discoveryv1.EndpointSlice{v4("p@a 10.0.0.1 rs")}, done: true},
		"it said something else":     {said: "p~10.0.0.9", done: true, want: now},
		"it said the same":           {said: now, done: true},
		"it said that of another":    {said: "q~10.0.0.9", done: true},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{UID: "p"}, Spec: corev1.PodSpec{NodeName: cmp.Or(c.node, "a")},
		}
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: "10.0.0.9"}, {IP: "fd00::9"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}
		said := Statement{Node: "a"}
		if c.said != "" {
			before, err := parseCorrection(c.said)
			if err != nil {
				t.Fatal(err)
			}
			said.Corrections = []Correction{before}
		}
		fresh := func(p *corev1.Pod) bool { return p.UID == types.UID("p") && !c.done }
		var got []string
		for _, x := range Lagging(said, each(pod), fresh, slices.Values(c.slices), slices.Values(c.endpoints)) {
			got = append(got, string(x.appendText(nil)))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
