package invariant

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/weir-edge/weir/sim/client"
)

// restored is small, after a restore from a backup of version 12: y is there again, and versions are used a second
// time.
func restored(t *testing.T) *View {
	t.Helper()
	h, err := NewHistory([]client.Op{
		list(13, object("x", 12, nil), object("y", 11, front)),
		{What: client.OpOpen, Version: 13},
		event(watch.Added, object("z", 15, front), 15),
		{What: client.OpBookmark, Version: 16},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Since(14); err == nil {
		t.Error("a history that was widened to a later version")
	}
	if err := h.Since(12); err != nil {
		t.Fatal(err)
	}
	return h.Through(labels.Everything())
}

func TestJudgeAcross(t *testing.T) {
	gone := client.Op{What: client.OpError, Code: 410}
	x, y, z := object("x", 12, nil), object("y", 11, front), object("z", 15, front)
	before := small()[:5] // until y is deleted at 13
	for name, c := range map[string]struct {
		after   []client.Op
		broken  string
		relists int
	}{
		"lists once": {
			[]client.Op{gone, list(12, x, y), {What: client.OpOpen, Version: 12}, event(watch.Added, z, 15)}, "", 1,
		},
		"as a stream": {
			[]client.Op{
				gone, {What: client.OpOpen, Initial: true}, event(watch.Added, x, 12), event(watch.Added, y, 11),
				{What: client.OpInitialEnd, Version: 13}, event(watch.Added, z, 15),
			}, "", 1,
		},
		"sees the last of before": {[]client.Op{small()[5], gone, list(15, x, y, z)}, "", 1},
		"lists twice":             {[]client.Op{gone, list(13, x, y), gone, list(15, x, y, z)}, "", 2},
		"goes on without a list": {
			[]client.Op{gone, {What: client.OpOpen, Version: 13}, event(watch.Added, z, 15)}, Filtered, 0,
		},
		"never lists": {nil, "never listed", 0},
		"keeps what is gone": {
			[]client.Op{
				gone, list(12, x, y, object("w", 12, front)), {What: client.OpOpen, Version: 12}, event(watch.Added, z, 15),
			}, "ghost", 1,
		},
		"misses what is there again": {
			[]client.Op{gone, list(12, x), {What: client.OpOpen, Version: 12}, event(watch.Added, z, 15)}, "missing", 1,
		},
		"misses a change": {[]client.Op{gone, list(12, x, y)}, Reliable, 1},
		"goes back without a list": {
			[]client.Op{{What: client.OpBookmark, Version: 12}, gone, list(15, x, y, z)}, NeverBack, 1,
		},
		"goes back in the second, too":  {[]client.Op{gone, list(15, x, y, z), gone, list(13, x, y)}, NeverBack, 2},
		"a list of the lost history":    {[]client.Op{gone, list(14, object("x", 14, front))}, Complete, 1},
		"older than the cloud ever was": {[]client.Op{gone, list(11, x, y)}, "older than the history", 1},
	} {
		t.Run(name, func(t *testing.T) {
			ops := append(append([]client.Op(nil), before...), c.after...)
			start := time.Unix(1000, 0)
			for i := range ops {
				ops[i].At = start.Add(time.Duration(i) * time.Second)
			}
			h, err := NewHistory(small())
			if err != nil {
				t.Fatal(err)
			}
			from := start.Add(time.Duration(len(before))*time.Second - time.Millisecond)
			got := Rules{}.JudgeAcross([]Era{{View: h.Through(labels.Everything())}, {restored(t), from}}, ops)
			var all strings.Builder
			for _, v := range got.Violations {
				all.WriteString(v.String() + "\n")
			}
			switch {
			case got.Relists != c.relists:
				t.Errorf("%d re-lists, want %d", got.Relists, c.relists)
			case c.relists == 1 && got.Causes["410 Gone"] != 1:
				t.Errorf("causes %v", got.Causes)
			case c.broken == "" && all.Len() > 0, !strings.Contains(all.String(), c.broken):
				t.Errorf("want %q, got\n%s", c.broken, &all)
			}
		})
	}
}
