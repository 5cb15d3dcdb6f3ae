package offline

import (
	"fmt"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
)

// TestPagesApart: callers that begin lists and end none stop no other caller's list in pages, and hold no more than a
// bounded number.
func TestPagesApart(t *testing.T) {
	b := newBed(t)
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	p := newPages(clock)
	defer p.close()
	put := func(owner string, n int) pageKey {
		clock.Step(time.Second)
		shape := store.Shape{
			Component: store.ComponentOf(fmt.Sprint("agent", n), owner, ""),
			Resource:  store.Resource{Version: "v1", Name: "configmaps"}, Form: store.Protobuf,
		}
		l, err := b.store.List(shape, wire.Kind{APIVersion: "v1", Kind: "ConfigMap"})
		check(t, err)
		k := pageKey{shape, fmt.Sprint(owner, n)}
		p.put(k, &paged{listing: l})
		return k
	}
	mine := put("modest", 0)
	for n := range 2 * maxPages { // of 100 s
		put("greedy", n)
	}
	if n := len(p.all); n != 1+maxOwned {
		t.Errorf("%d lists are under way", n)
	}
	for n := range maxPages { // the node itself has no bound of its own
		put("", n)
	}
	late := put("late", 0)
	if len(p.all) > maxPages {
		t.Errorf("%d lists are under way", len(p.all))
	}
	for _, k := range []pageKey{mine, late} {
		l := p.take(k)
		if l == nil {
			t.Fatalf("the list of %s is not under way any more", k.token)
		}
		l.listing.Close()
	}
}
