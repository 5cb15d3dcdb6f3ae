package invariant

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

func TestFaithfulStreamsPass(t *testing.T) {
	w := newWorld(t)
	for round := range 400 {
		v := w.view(t)
		ops := w.faithful(v)
		for _, rules := range []Rules{{}, {Batches: true}} {
			got := rules.Judge(v, ops)
			if len(got.Violations) > 0 || got.Missing > 0 || got.Relists > 0 || got.Skipped > 0 {
				t.Fatalf("seed %d round %d, %+v: %+v", w.seed, round, rules, got)
			}
		}
	}
}

// TestBatches: a relay's difference is right by its rules, and only by those.
func TestBatches(t *testing.T) {
	w := newWorld(t)
	refused := 0
	for round := range 400 {
		v := w.view(t)
		ops := w.batched(v)
		got := Rules{Batches: true}.Judge(v, ops)
		if len(got.Violations) > 0 || got.Missing > 0 {
			t.Fatalf("seed %d round %d: %v\n%v", w.seed, round, got.Violations, ops)
		}
		strict := Judge(v, ops)
		if got.Skipped > 0 && len(strict.Violations) == 0 {
			t.Fatalf("seed %d round %d: a batch that leaves out %d events passed the strict rules", w.seed, round, got.Skipped)
		}
		if len(strict.Violations) > 0 {
			refused++
		}
	}
	if refused < 200 {
		t.Errorf("only %d streams of 400 had a batch that the strict rules refuse", refused)
	}
}

// lie makes a stream unfaithful. at are the indices of its live events; ok is false if it cannot be done here.
type lie func(w *world, v *View, ops []client.Op, at []int) (lied []client.Op, ok bool)

// lies are ways to be unfaithful; batches reports whether they are lies by the rules of batches too.
var lies = []struct {
	name    string
	batches bool
	tell    lie
}{
	{"drop an event", false, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		return slices.Delete(ops, i, i+1), true
	}},
	{"drop the rest", true, func(w *world, v *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		return ops[:i], len(differences(v.at(ops[i].Version-1), v.at(v.last))) > 0
	}},
	{
		"drop an event and the rest, but tell the end", true,
		func(w *world, v *View, ops []client.Op, at []int) ([]client.Op, bool) {
			i := w.pick(at)
			differ := differences(v.at(ops[i].Version-1), v.at(v.last))
			return append(ops[:i], client.Op{What: client.OpBookmark, Version: v.last}), len(differ) > 0
		},
	},
	{"duplicate", true, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		return slices.Insert(ops, i, ops[i]), true
	}},
	{"swap", true, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		n := w.IntN(len(at) - 1)
		i, j := at[n], at[n+1]
		ops[i], ops[j] = ops[j], ops[i]
		return ops, j == i+1 // with a resume in between, the second one may be that of a batch
	}},
	{"an old event again", true, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		n := w.IntN(len(at) - 1)
		i, j := at[n], at[n+1]
		return slices.Insert(ops, j+1, ops[i]), j == i+1 // a resume in between may replay it
	}},
	{"another content", true, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		ops[w.pick(at)].Item.Hash++
		return ops, true
	}},
	{"another object", true, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		ops[w.pick(at)].Item.Key += "x"
		return ops, true
	}},
	{"another uid", true, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		ops[w.pick(at)].Item.UID += "x"
		return ops, true
	}},
	{"another type", true, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		op := &ops[w.pick(at)]
		op.Type = map[watch.EventType]watch.EventType{
			watch.Added: watch.Modified, watch.Modified: watch.Added, watch.Deleted: watch.Added,
		}[op.Type]
		return ops, true
	}},
	{"a change that never was", true, func(w *world, v *View, ops []client.Op, _ []int) ([]client.Op, bool) {
		it := client.Item{Key: "a/new", UID: "new"}
		return append(ops, event(watch.Added, it, v.last+1)), true
	}},
	{"a bookmark too high", false, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		return slices.Insert(ops, i, client.Op{What: client.OpBookmark, Version: ops[i].Version}), true
	}},
	{"a bookmark in place of an event", false, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		ops[i] = client.Op{What: client.OpBookmark, Version: ops[i].Version}
		return ops, true
	}},
	{"a bookmark that goes back", true, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		return slices.Insert(ops, i+1, client.Op{What: client.OpBookmark, Version: ops[i].Version - 1}), true
	}},
	{"a resume too late", false, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		ops[i] = client.Op{What: client.OpOpen, Version: ops[i].Version - 1}
		return ops, true
	}},
	{"a list that goes back", true, func(w *world, v *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		l := client.Op{What: client.OpList, Version: ops[i].Version - 1}
		for _, it := range v.at(l.Version) {
			l.Items = append(l.Items, it)
		}
		return slices.Insert(ops, i+1, l), true
	}},
	{"a stale list under a new version", true, func(w *world, v *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		l := client.Op{What: client.OpList, Version: ops[i].Version}
		old := v.at(l.Version - 1)
		for _, it := range old {
			l.Items = append(l.Items, it)
		}
		return slices.Insert(ops, i+1, l), len(differences(old, v.at(l.Version))) > 0
	}},
	{"a list older than all", true, func(w *world, v *View, ops []client.Op, at []int) ([]client.Op, bool) {
		return slices.Insert(ops, w.pick(at), client.Op{What: client.OpList, Version: v.start - 1}), true
	}},
	{"an empty list", true, func(w *world, v *View, ops []client.Op, at []int) ([]client.Op, bool) {
		i := w.pick(at)
		return slices.Insert(ops, i+1, client.Op{What: client.OpList, Version: ops[i].Version}), len(v.at(ops[i].Version)) > 0
	}},
	{"a ghost in the list", true, func(_ *world, _ *View, ops []client.Op, _ []int) ([]client.Op, bool) {
		ghost := client.Item{Key: "a/ghost", UID: "ghost", Version: 1}
		if ops[0].What == client.OpOpen {
			return slices.Insert(ops, 1, event(watch.Added, ghost, 1)), true
		}
		ops[0].Items = append(ops[0].Items, ghost)
		return ops, true
	}},
	{"an object twice in the list", true, func(_ *world, _ *View, ops []client.Op, _ []int) ([]client.Op, bool) {
		if ops[0].What == client.OpOpen {
			return slices.Insert(ops, 1, ops[1]), ops[1].What == client.OpEvent
		}
		if len(ops[0].Items) == 0 {
			return nil, false
		}
		ops[0].Items = append(ops[0].Items, ops[0].Items[0])
		return ops, true
	}},
	{"a hole in the list", true, func(_ *world, _ *View, ops []client.Op, _ []int) ([]client.Op, bool) {
		switch {
		case ops[0].What == client.OpOpen:
			return slices.Delete(ops, 1, 2), ops[1].What == client.OpEvent
		case len(ops[0].Items) == 0:
			return nil, false
		}
		ops[0].Items = ops[0].Items[1:]
		return ops, true
	}},
	{
		"an end of initial events out of nowhere", true,
		func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
			i := w.pick(at)
			return slices.Insert(ops, i+1, client.Op{What: client.OpInitialEnd, Version: ops[i].Version}), true
		},
	},
	{"events before a list", true, func(_ *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		return ops[at[0]:], true
	}},
	{"what cannot be read", true, func(w *world, _ *View, ops []client.Op, at []int) ([]client.Op, bool) {
		return slices.Insert(ops, w.pick(at), client.Op{What: client.OpError, Malformed: true}), true
	}},
}

func (w *world) pick(of []int) int { return of[w.IntN(len(of))] }

// TestEveryLieIsObjectedTo, by the strict rules and by those of batches.
func TestEveryLieIsObjectedTo(t *testing.T) {
	for _, l := range lies {
		t.Run(l.name, func(t *testing.T) {
			w := newWorld(t)
			for tried, rounds := 0, 0; tried < 100; rounds++ {
				if rounds > 10_000 {
					t.Fatalf("seed %d: told only %d times", w.seed, tried)
				}
				v := w.view(t)
				ops := w.faithful(v)
				at := live(ops)
				if len(at) < 3 {
					continue
				}
				lied, ok := l.tell(w, v, ops, at)
				if !ok {
					continue
				}
				tried++
				for _, rules := range []Rules{{}, {Batches: true}} {
					if rules.Batches && !l.batches {
						continue
					}
					if got := rules.Judge(v, lied); len(got.Violations) == 0 {
						t.Fatalf("seed %d, try %d: passed by %+v\n%v", w.seed, tried, rules, lied)
					}
				}
			}
		})
	}
}

// live are the indices of the events after the first complete state.
func live(ops []client.Op) (at []int) {
	full := false
	for i, op := range ops {
		full = full || op.What == client.OpList || op.What == client.OpInitialEnd
		if full && op.What == client.OpEvent {
			at = append(at, i)
		}
	}
	return at
}
