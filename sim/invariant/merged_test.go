package invariant

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// TestMerged: what a stream was not shown one by one counts, whatever the rules allow.
func TestMerged(t *testing.T) {
	open := func(version uint64) client.Op { return client.Op{What: client.OpOpen, Version: version} }
	x9, y11, x12, x14 := object("x", 9, front), object("y", 11, front), object("x", 12, nil), object("x", 14, front)
	all := small()
	end := client.Op{What: client.OpBookmark, Version: 20}
	for name, c := range map[string]struct {
		ops  []client.Op
		want int
	}{
		"each":             {all, 0},
		"resumed":          {append(all[:4:4], append([]client.Op{{What: client.OpClose}, open(11)}, all[3:]...)...), 0},
		"listed in time":   {[]client.Op{list(20, x14), open(20)}, 0},
		"listed at a time": {append(all[:4:4], list(12, y11, x12), open(12), all[4], all[5]), 0},
		"listed again":     {append(all[:3:3], list(20, x14), open(20)), 3},
		"streamed again": {
			append(all[:3:3], client.Op{What: client.OpOpen, Initial: true}, event(watch.Added, x14, 14),
				client.Op{What: client.OpInitialEnd, Version: 20}), 3,
		},
		"left out":        {append(all[:4:4], all[5], end), 1},
		"a batch":         {[]client.Op{list(10, x9), open(10), event(watch.Modified, x14, 14), end}, 3},
		"a batch deletes": {append(all[:4:4], event(watch.Deleted, y11, 12), all[5], end), 1},
		"nothing came":    {[]client.Op{list(10, x9), open(10)}, 4},
		"never began":     {[]client.Op{open(10), all[2]}, 0},
	} {
		for _, rules := range []Rules{{}, {Batches: true}} {
			if got := rules.Judge(through(t, ""), c.ops); got.Merged != c.want {
				t.Errorf("%s, %+v: %d merged, want %d: %v", name, rules, got.Merged, c.want, got.Violations)
			}
		}
	}
}

// TestMergedAtRandom: no faithful stream merges anything, and a stream with a batch merges no more than was left out.
func TestMergedAtRandom(t *testing.T) {
	w := newWorld(t)
	some := 0
	for round := range 400 {
		v := w.view(t)
		if got := Judge(v, w.faithful(v)).Merged; got > 0 {
			t.Fatalf("seed %d round %d: %d merged, want none", w.seed, round, got)
		}
		ops := w.batched(v)
		got := Rules{Batches: true}.Judge(v, ops)
		if got.Skipped > 0 && got.Merged == 0 {
			t.Fatalf("seed %d round %d: %d left out, and none merged\n%v", w.seed, round, got.Skipped, ops)
		}
		some += got.Merged
	}
	if some == 0 {
		t.Error("no batch merged anything")
	}
}

// TestMergedAcross: the list by which a stream goes on in another history merges nothing of either.
func TestMergedAcross(t *testing.T) {
	x, y, z := object("x", 12, nil), object("y", 11, front), object("z", 15, front)
	from := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		before, after []client.Op
		want          int
	}{
		"each": {
			small()[:5], []client.Op{list(12, x, y), {What: client.OpOpen, Version: 12}, event(watch.Added, z, 15)}, 0,
		},
		"listed twice": {small()[:5], []client.Op{list(12, x, y), list(15, x, y, z)}, 1},
		"left out":     {append(small()[:3:3], small()[4]), []client.Op{list(15, x, y, z)}, 1},
	} {
		ops := append([]client.Op{}, c.before...)
		for _, op := range c.after {
			op.At = from.Add(time.Second)
			ops = append(ops, op)
		}
		got := Rules{}.JudgeAcross([]Era{{View: through(t, "")}, {View: restored(t), From: from}}, ops)
		if got.Merged != c.want {
			t.Errorf("%s: %d merged, want %d: %v", name, got.Merged, c.want, got.Violations)
		}
	}
}
