package images

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-edge/weir/impl/exchange"
)

// TestNothingShared: a hub of a pool that shares nothing shows nothing, and has the desk forget what it held and
// pulled. When the pool shares again, all of it is back.
func TestNothingShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b")
		a, b := w.nodes["a"], w.nodes["b"]
		ctx, cancel := context.WithCancel(t.Context())
		wait := w.run(ctx)
		layer, pulled := a.put("layer"), exchange.Digest{1}
		sleep(2 * settles)
		a.get("GET", "/v2/app/blobs/"+pulled.String(), "")
		sleep(lookEvery)
		code := func(h *hub) int {
			status, _, _, _ := h.get("GET", "/v2/app/blobs/"+layer.String(), "")
			return status
		}
		shown := func() int {
			resp, err := b.Open(ctx, exchange.Holder{Node: "a"}, http.MethodGet, layer, "")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			return resp.StatusCode
		}
		if s := a.mirror.Standing(); code(b) != 200 || shown() != 200 || s.Holds != 1 || s.Pulls != 1 {
			t.Errorf("shared: %+v", s)
		}
		a.denied.Store(true)
		if own, other := code(a), shown(); own != 404 || other != 404 {
			t.Errorf("nothing is shared: %d for its own node, and %d for another, want 404 at once", own, other)
		}
		sleep(2 * lookEvery)
		if s := a.mirror.Standing(); s.Holds != 0 || s.Pulls != 0 || !s.Desk {
			t.Errorf("nothing is shared, and the pool knows of %+v", s)
		}
		if code(b) != 404 || b.counts("pull") != 1 {
			t.Error("b is not to pull what nobody shows")
		}
		a.denied.Store(false)
		sleep(2 * lookEvery)
		if code(a) != 200 || shown() != 200 || a.mirror.Standing().Holds != 1 {
			t.Errorf("it is shared again: %d, %d, %+v", code(a), shown(), a.mirror.Standing())
		}
		cancel()
		wait()
	})
}

// TestTagsOfOthers: a desk is not told tags of a registry that is not shared.
func TestTagsOfOthers(t *testing.T) {
	a := newWorld(t).add("a")
	for _, tag := range []string{"docker.io/library/app:v1", "secret.example.com/app:v1", "secret.example.com/app:v2"} {
		a.mirror.tags.learn(tag, exchange.Digest{1}, time.Now(), true)
	}
	if all := a.mirror.account.words(); len(all) != 1 || all[0].Tag != "docker.io/library/app:v1" {
		t.Errorf("%+v is told", all)
	}
}
