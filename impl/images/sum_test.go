package images

import (
	"context"
	"os"
	"testing"
	"testing/synctest"

	"github.com/weir-edge/weir/impl/digest"
	"github.com/weir-edge/weir/impl/exchange"
)

// TestSum: what a node pulls, reads from members and gives to them is told as it was. Each byte of a pull counts once,
// also when the pull began with what a member had, and when nobody in the pool could be asked.
func TestSum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		ctx, cancel := context.WithCancel(t.Context())
		wait := w.run(ctx)
		const layer = "0123456789"
		d := exchange.Digest(sum(layer))
		path, ref := "/v2/app/blobs/"+d.String(), "k8s.io/1/layer-"+d.String()
		sums := func(why string, want map[string]digest.Images) {
			t.Helper()
			sleep(2 * lookEvery)
			for name, h := range w.nodes {
				if got := h.mirror.Metrics.Sum(); got != want[name] {
					t.Errorf("%s: %s has %+v, want %+v", why, name, got, want[name])
				}
			}
		}
		w.nodes["a"].get("GET", path, "")
		w.nodes["a"].ingest(ref, layer[:4], "10")
		w.nodes["b"].get("GET", path, "") // it breaks off, for a brings nothing more
		dir := w.nodes["b"].ingest(ref, layer[:4], "10")
		if code, _, _, _ := w.nodes["b"].get("GET", path, "bytes=4-"); code != 404 || w.nodes["b"].counts("pull") != 1 {
			t.Fatalf("%d, want 404: it is to pull the rest", code)
		}
		w.nodes["b"].grow(dir, layer[4:6])
		want := map[string]digest.Images{"a": {Pulled: 4, Served: 4}, "b": {Pulled: 2, Saved: 4}}
		sums("in the middle", want)
		w.nodes["b"].put(layer)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		want["b"] = digest.Images{Pulled: 6, Saved: 4}
		sums("at the end", want)
		if code, _, body, err := w.nodes["c"].get("GET", path, ""); code != 200 || string(body) != layer || err != nil {
			t.Errorf("%d %s %v", code, body, err)
		}
		want["b"], want["c"] = digest.Images{Pulled: 6, Saved: 4, Served: 10}, digest.Images{Saved: 10}
		sums("another node", want)
		w.down.Store(true)
		w.nodes["c"].get("GET", "/v2/app/blobs/"+exchange.Digest(sum("alone")).String(), "")
		w.nodes["c"].put("alone")
		want["c"] = digest.Images{Saved: 10, Pulled: 5}
		sums("without a desk", want)
		cancel()
		wait()
	})
}
