package card

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-edge/weir/sim/change"
	"github.com/weir-edge/weir/sim/parts"
)

// TestCount: lists, streaming lists, watches and reviews of hubs count once each, by pool; what others ask does not,
// and a line that is under way is left for later.
func TestCount(t *testing.T) {
	event := func(user, stage, verb, uri, resource, namespace string) string {
		return `{"stage":"` + stage + `","verb":"` + verb + `","requestURI":"` + uri + `","user":{"username":"` + user +
			`"},"objectRef":{"resource":"` + resource + `","namespace":"` + namespace + `"}}`
	}
	const hub, slices = "weir:hub:pool-head:pool-head-2", "/apis/discovery.k8s.io/v1/endpointslices"
	log := strings.Join([]string{
		event(hub, "ResponseComplete", "list", slices+"?limit=1", "endpointslices", ""),
		event(hub, "ResponseComplete", "list", slices, "endpointslices", "card"),
		event(hub, "ResponseStarted", "watch", slices+"?watch=1&sendInitialEvents=true", "endpointslices", ""),
		event(hub, "ResponseComplete", "watch", slices+"?watch=1&sendInitialEvents=true", "endpointslices", ""),
		event(hub, "ResponseStarted", "watch", slices+"?watch=1&sendInitialEvents=false", "endpointslices", ""),
		event(hub, "ResponseStarted", "watch", "/api/v1/endpoints?watch=1", "endpoints", ""),
		event(hub, "ResponseComplete", "create", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			"selfsubjectaccessreviews", ""),
		event("weir:hub:pool-base:pool-base-1", "ResponseComplete", "list", "/api/v1/endpoints", "endpoints", ""),
		event("system:node:pool-head-2", "ResponseComplete", "list", "/api/v1/pods", "pods", ""),
		`{"stage":"ResponseComplete","verb":"get","requestURI":"/readyz","user":{"username":"` + hub + `"}}`,
		`{"stage":"Respon`,
	}, "\n")
	got, err := count(strings.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]float64{
		"pool-head": {
			"lists of endpointslices": 2, "lists of endpointslices of one namespace": 1, "lists of anything else": 1,
			"watches": 2, "access reviews": 1,
		},
		"pool-base": {"lists of endpoints": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	if _, err := count(strings.NewReader(strings.Repeat("x", maxEvent+1))); err == nil {
		t.Error("a line without an end is read")
	}
}

// TestBook: samples stand with their side and round, figures in the order in which they came.
func TestBook(t *testing.T) {
	b := newBook("make report")
	m := meaning{"get", "time", "s", change.Time}
	b.add(m, 0, 0, 1)
	b.add(m, 2, 1, 3)
	b.add(meaning{"a", "b", "B", change.Bytes}, 1, 0, 2)
	want := []change.Figure{
		{
			Subject: "get", Name: "time", Unit: "s", Kind: change.Time, Repeat: "make report", Base: [][]float64{{1}},
			Head: [][]float64{nil, {3}},
		},
		{Subject: "a", Name: "b", Unit: "B", Kind: change.Bytes, Repeat: "make report", Again: [][]float64{{2}}},
	}
	if diff := cmp.Diff(want, b.figures()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNamesAreOfOneLength: what is in bytes must not differ by the name of its pool.
func TestNamesAreOfOneLength(t *testing.T) {
	for _, name := range []string{poolTwin, poolHead} {
		if len(name) != len(poolBase) {
			t.Errorf("%s and %s", name, poolBase)
		}
	}
}

func TestTooFewBatches(t *testing.T) {
	if _, err := Measure(t.Context(), Config{Batches: change.LeastSamples - 1}); err == nil ||
		!strings.Contains(err.Error(), "batches") {
		t.Errorf("got %v", err)
	}
}

// TestCopied: the base and the base once more run the same code out of files of their own.
func TestCopied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir-hub")
	if err := os.WriteFile(path, []byte("code"), 0o755); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	twin, err := copied(parts.Binaries{parts.HubCommand: path}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(twin[parts.HubCommand])
	if err != nil || string(code) != "code" {
		t.Errorf("the copy has %q: %v", code, err)
	}
	a, errA := os.Stat(path)
	b, errB := os.Stat(twin[parts.HubCommand])
	if errA != nil || errB != nil || os.SameFile(a, b) || b.Mode().Perm() != 0o755 {
		t.Errorf("%v and %v: want two files that can be run", a, b)
	}
}
