package runner

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/scenario"
)

// TestUndo: what a merge patch changes, another one puts back.
func TestUndo(t *testing.T) {
	for _, test := range [][2]string{
		{`{"spec":{"mode":"Coordinator","coordinator":{"servers":["a"]}}}`, `{"spec":{"mode":"LeaderHubs"}}`},
		{`{"spec":{"a":1}}`, `{"spec":{"a":null,"b":{"c":2}}}`},
		{`{"spec":{}}`, `{"spec":{"taints":[{"key":"x"}]},"metadata":{"labels":{"y":"z"}}}`},
		{`{"spec":{"a":{"b":1}}}`, `{"spec":{"a":"text"}}`},
		{`{"spec":{"a":"text"}}`, `{"spec":{"a":{"b":1}}}`},
	} {
		var was, patch map[string]any
		for i, into := range []*map[string]any{&was, &patch} {
			if err := json.Unmarshal([]byte(test[i]), into); err != nil {
				t.Fatal(err)
			}
		}
		back, err := json.Marshal(undo(patch, was))
		if err != nil {
			t.Fatal(err)
		}
		got := []byte(test[0])
		for _, p := range [][]byte{[]byte(test[1]), back} {
			if got, err = jsonpatch.MergePatch(got, p); err != nil {
				t.Fatal(err)
			}
		}
		var is map[string]any
		if err := json.Unmarshal(got, &is); err != nil {
			t.Fatal(err)
		}
		for _, o := range []map[string]any{is, was} { // an empty map beside says nothing
			if m, ok := o["metadata"].(map[string]any); ok && len(m["labels"].(map[string]any)) == 0 {
				delete(o, "metadata")
			}
			if s, ok := o["spec"].(map[string]any); ok {
				if b, ok := s["b"].(map[string]any); ok && len(b) == 0 {
					delete(s, "b")
				}
			}
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Errorf("%s after %s and %s (-was +is):\n%s", test[0], test[1], back, diff)
		}
	}
}

// TestDiffers: what weir-manager keeps has to be as it was. What others add beside may stay.
func TestDiffers(t *testing.T) {
	was := func() map[string]any {
		return map[string]any{
			"metadata": map[string]any{
				"labels": map[string]any{"a": "b"}, "annotations": map[string]any{"weir.dev/mode": "coordinator"},
			}, "subsets": []any{"x"},
		}
	}
	for want, edit := range map[string]func(o map[string]any){
		"": func(o map[string]any) { o["metadata"].(map[string]any)["labels"].(map[string]any)["more"] = "c" },
		"metadata": func(o map[string]any) {
			o["metadata"].(map[string]any)["annotations"].(map[string]any)["weir.dev/mode"] = "leader-hubs"
		},
		"subsets": func(o map[string]any) { o["subsets"] = []any{} },
	} {
		is := was()
		edit(is)
		if got := differs(scenario.EndpointsObject, was(), is); got != want {
			t.Errorf("differs %q, want %q", got, want)
		}
	}
}

// TestSignedAgain: a directory that is signed again says what it said, but for its version; another one does not, nor
// one without a signature.
func TestSignedAgain(t *testing.T) {
	was := `{"directory":{"pool":"harbour","version":7,"mode":"coordinator"},"signature":"YQ=="}`
	for is, want := range map[string]bool{
		`{"directory":{"pool":"harbour","version":8,"mode":"coordinator"},"signature":"Yg=="}`: true,
		`{"directory":{"pool":"harbour","version":8,"mode":"leader-hubs"},"signature":"Yg=="}`: false,
		`{"directory":{"pool":"harbour","version":8,"mode":"coordinator"}}`:                    false,
		`{"directory":`: false,
	} {
		if says(contract.LeaderHubSigned, is, was) != want {
			t.Errorf("%s says what it said: want %t", is, want)
		}
	}
}
