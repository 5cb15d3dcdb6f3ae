package invariant

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// past makes a random history, as its recorder would have taken it down.
func past(rnd *rand.Rand) []client.Op {
	state := map[string]client.Item{}
	version := uint64(100)
	item := func(key string) client.Item {
		it := client.Item{Key: key, UID: "uid-" + key, Version: version, Hash: rnd.Uint64()}
		if rnd.IntN(2) == 0 {
			it.Labels = map[string]string{"tier": "front"}
		}
		return it
	}
	list := client.Op{What: client.OpList, Version: version}
	for i := range 5 {
		it := item(fmt.Sprint("a/", i))
		state[it.Key] = it
		list.Items = append(list.Items, it)
	}
	ops := []client.Op{list, {What: client.OpOpen, Version: version}}
	for range 60 {
		version += uint64(1 + rnd.IntN(3))
		key := fmt.Sprint("a/", rnd.IntN(8))
		_, have := state[key]
		op := client.Op{What: client.OpEvent, Version: version, Item: item(key), Type: watch.Added}
		switch {
		case have && rnd.IntN(3) == 0:
			op.Type = watch.Deleted
			delete(state, key)
		case have:
			op.Type = watch.Modified
			state[key] = op.Item
		default:
			state[key] = op.Item
		}
		ops = append(ops, op)
	}
	return append(ops, client.Op{What: client.OpBookmark, Version: version + 5})
}

// observe is what a faithful stream through a view carries: a list somewhere, events, bookmarks, breaks and resumes.
func observe(rnd *rand.Rand, v *View) []client.Op {
	from := v.start + uint64(rnd.IntN(int(v.last-v.start)/2))
	l := client.Op{What: client.OpList, Version: from}
	for _, it := range v.at(from) {
		l.Items = append(l.Items, it)
	}
	ops := []client.Op{l, {What: client.OpOpen, Version: from}}
	for _, e := range v.events[v.after(from):] {
		ops = append(ops, client.Op{What: client.OpEvent, Type: e.typ, Version: e.version, Item: e.item})
		from = e.version
		if rnd.IntN(5) == 0 {
			ops = append(ops, client.Op{What: client.OpBookmark, Version: from})
		}
		if rnd.IntN(8) == 0 {
			ops = append(ops, client.Op{What: client.OpOpen, Version: from})
		}
	}
	return append(ops, client.Op{What: client.OpBookmark, Version: v.last})
}

var selectors = []string{"", "tier=front", "!tier"}

func random(t *testing.T) (*rand.Rand, uint64) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0)), seed
}

func view(t *testing.T, rnd *rand.Rand) *View {
	t.Helper()
	h, err := NewHistory(past(rnd))
	if err != nil {
		t.Fatal(err)
	}
	sel, err := labels.Parse(selectors[rnd.IntN(len(selectors))])
	if err != nil {
		t.Fatal(err)
	}
	return h.Through(sel)
}

func TestFaithfulStreamsPass(t *testing.T) {
	rnd, seed := random(t)
	for round := range 300 {
		v := view(t, rnd)
		if got := Judge(v, observe(rnd, v)); len(got.Violations) > 0 || got.Missing > 0 || got.Relists > 0 {
			t.Fatalf("seed %d round %d: %+v", seed, round, got.Violations)
		}
	}
}

// Every way to be unfaithful is objected to.
func TestUnfaithfulStreamsDoNot(t *testing.T) {
	rnd, seed := random(t)
	events := func(ops []client.Op) (at []int) {
		for i, op := range ops {
			if op.What == client.OpEvent {
				at = append(at, i)
			}
		}
		return at
	}
	lies := map[string]func(v *View, ops []client.Op, i int) []client.Op{
		"drop":      func(_ *View, ops []client.Op, i int) []client.Op { return append(ops[:i:i], ops[i+1:]...) },
		"duplicate": func(_ *View, ops []client.Op, i int) []client.Op { return append(ops[:i+1:i+1], ops[i:]...) },
		"content":   func(_ *View, ops []client.Op, i int) []client.Op { ops[i].Item.Hash++; return ops },
		"identity":  func(_ *View, ops []client.Op, i int) []client.Op { ops[i].Item.UID += "x"; return ops },
		"type": func(_ *View, ops []client.Op, i int) []client.Op {
			ops[i].Type = map[watch.EventType]watch.EventType{watch.Added: watch.Modified, watch.Modified: watch.Deleted, watch.Deleted: watch.Added}[ops[i].Type]
			return ops
		},
		"bookmark too high": func(v *View, ops []client.Op, i int) []client.Op {
			b := client.Op{What: client.OpBookmark, Version: ops[i].Version}
			return append(append(ops[:i:i], b), ops[i:]...)
		},
		"stale list": func(v *View, ops []client.Op, i int) []client.Op {
			l := client.Op{What: client.OpList, Version: v.start}
			return append(append(ops[:i+1:i+1], l), ops[i+1:]...)
		},
		"ghost": func(_ *View, ops []client.Op, _ int) []client.Op {
			ops[0].Items = append(ops[0].Items, client.Item{Key: "a/ghost", Version: 1})
			return ops
		},
		"hole in the list": func(_ *View, ops []client.Op, _ int) []client.Op {
			ops[0].Items = ops[0].Items[1:]
			return ops
		},
		"empty list": func(v *View, ops []client.Op, i int) []client.Op {
			l := client.Op{What: client.OpList, Version: ops[i].Version}
			return append(append(ops[:i+1:i+1], l), ops[i+1:]...)
		},
		"no end": func(_ *View, ops []client.Op, i int) []client.Op { return ops[:i:i] },
	}
	for name, lie := range lies {
		tried := 0
		for round := 0; tried < 60; round++ {
			v := view(t, rnd)
			ops := observe(rnd, v)
			at := events(ops)
			if len(at) < 3 || len(ops[0].Items) == 0 {
				continue
			}
			i := at[rnd.IntN(len(at))]
			switch name {
			case "content":
				if ops[i].Type == watch.Deleted { // an object that leaves a selector has its old content: not known here
					continue
				}
			case "empty list":
				if len(v.at(ops[i].Version)) == 0 {
					continue
				}
			}
			tried++
			if got := Judge(v, lie(v, ops, i)); len(got.Violations) == 0 {
				t.Errorf("seed %d: %s in round %d passed", seed, name, round)
			}
		}
	}
}

func TestTheTruthHasNoGaps(t *testing.T) {
	rnd, _ := random(t)
	ops := past(rnd)
	if _, err := NewHistory(append(ops, client.Op{What: client.OpList, Version: 999})); err == nil {
		t.Error("a recorder that listed twice was believed")
	}
	if _, err := NewHistory(nil); err == nil {
		t.Error("nothing was believed")
	}
}
