package invariant

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

var seedFlag = flag.Uint64("seed", 0, "repeat a run of the property tests; 0: a new one")

// world is a source of random histories and of the streams that clients see of them.
type world struct {
	*rand.Rand
	seed uint64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with -seed %d", seed)
	return &world{rand.New(rand.NewPCG(seed, 0)), seed}
}

func (w *world) one(in int) bool { return w.IntN(in) == 0 }

// past is a random history, as its recorder takes it down.
func (w *world) past() []client.Op {
	state := map[string]client.Item{}
	version, births := uint64(100), 0
	item := func(key string) client.Item {
		it := client.Item{Key: key, Version: version, Hash: w.Uint64()}
		if it.UID = state[key].UID; it.UID == "" {
			births++
			it.UID = fmt.Sprint("uid-", births)
		}
		if w.one(2) {
			it.Labels = map[string]string{"tier": "front"}
		}
		return it
	}
	var ops []client.Op
	list := client.Op{What: client.OpList, Version: version}
	for i := range 5 {
		it := item(fmt.Sprint("a/", i))
		state[it.Key] = it
		list.Items = append(list.Items, it)
	}
	if w.one(2) {
		ops = append(ops, list, client.Op{What: client.OpOpen, Version: version})
	} else {
		ops = append(ops, client.Op{What: client.OpOpen, Initial: true})
		for _, it := range list.Items {
			ops = append(ops, event(watch.Added, it, it.Version))
		}
		ops = append(ops, client.Op{What: client.OpInitialEnd, Version: version})
	}
	for range 60 {
		version += uint64(1 + w.IntN(3))
		key := fmt.Sprint("a/", w.IntN(8))
		old, have := state[key]
		op := event(watch.Added, item(key), version)
		switch {
		case have && w.one(3):
			op.Type = watch.Deleted
			op.Item = old
			op.Item.Version = version
		case have:
			op.Type = watch.Modified
		}
		apply(state, op.Type, op.Item)
		if ops = append(ops, op); w.one(20) {
			ops = append(ops, client.Op{What: client.OpBookmark, Version: version}, client.Op{What: client.OpClose},
				client.Op{What: client.OpOpen, Version: version})
		}
	}
	return append(ops, client.Op{What: client.OpBookmark, Version: version + 5})
}

var selectors = []string{"", "tier=front", "!tier"}

// view is a random history through a random selector.
func (w *world) view(t *testing.T) *View {
	t.Helper()
	h, err := NewHistory(w.past())
	if err != nil {
		t.Fatal(err)
	}
	sel, err := labels.Parse(selectors[w.IntN(len(selectors))])
	if err != nil {
		t.Fatal(err)
	}
	return h.Through(sel)
}

// faithful is what a faithful stream through a view carries: a complete state somewhere, events, bookmarks, breaks and
// resumes.
func (w *world) faithful(v *View) []client.Op {
	ops, from := w.begin(v)
	for _, e := range v.events[v.after(from):] {
		ops = append(ops, e.op())
		ops = w.breakSometimes(ops, e.version)
	}
	return append(ops, client.Op{What: client.OpBookmark, Version: v.last})
}

// begin is a list, or a streaming one during which things change.
func (w *world) begin(v *View) (ops []client.Op, from uint64) {
	from = v.start + w.Uint64N((v.last-v.start)/2)
	if w.one(2) {
		l := client.Op{What: client.OpList, Version: from, Items: slices.Collect(maps.Values(v.at(from)))}
		return []client.Op{l, {What: client.OpOpen, Version: from}}, from
	}
	snapshot := v.start + w.Uint64N(from-v.start+1)
	ops = []client.Op{{What: client.OpOpen, Initial: true}}
	for _, it := range v.at(snapshot) {
		ops = append(ops, event(watch.Added, it, it.Version))
	}
	for _, e := range v.events[v.after(snapshot):v.after(from)] {
		ops = append(ops, e.op())
	}
	return append(ops, client.Op{What: client.OpInitialEnd, Version: from}), from
}

func (w *world) breakSometimes(ops []client.Op, version uint64) []client.Op {
	if w.one(5) {
		ops = append(ops, client.Op{What: client.OpBookmark, Version: version})
	}
	if w.one(8) {
		ops = append(ops, client.Op{What: client.OpClose}, client.Op{What: client.OpOpen, Version: version})
	}
	return ops
}

// batched is a stream of a relay that had to compare lists once or more.
func (w *world) batched(v *View) []client.Op {
	ops, at := w.begin(v)
	for at < v.last {
		next := min(at+w.Uint64N(40), v.last)
		ops = append(ops, batch(v, at, next)...)
		at = next
		for _, e := range v.events[v.after(at):] {
			if w.one(6) {
				break
			}
			ops, at = w.breakSometimes(append(ops, e.op()), e.version), e.version
		}
	}
	return append(ops, client.Op{What: client.OpBookmark, Version: v.last})
}

// batch is the difference of two versions, by rule 6 of a relay.
func batch(v *View, from, to uint64) (ops []client.Op) {
	before, after := v.at(from), v.at(to)
	var changed []client.Op
	for k, old := range before {
		if now, ok := after[k]; !ok || now.UID != old.UID {
			ops = append(ops, event(watch.Deleted, old, from))
			delete(before, k)
		}
	}
	for k, now := range after {
		old, ok := before[k]
		switch {
		case !ok:
			changed = append(changed, event(watch.Added, now, now.Version))
		case old.Version != now.Version:
			changed = append(changed, event(watch.Modified, now, now.Version))
		}
	}
	slices.SortFunc(changed, func(a, b client.Op) int { return int(a.Version) - int(b.Version) })
	// What came into the selector has its own version, which may be older than where the client is: it was changed then.
	return append(append(ops, changed...), client.Op{What: client.OpBookmark, Version: to})
}

func (e expected) op() client.Op { return event(e.typ, e.item, e.version) }

func event(typ watch.EventType, it client.Item, version uint64) client.Op {
	it.Version = version
	return client.Op{What: client.OpEvent, Type: typ, Version: version, Item: it}
}
