package relay

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

func TestHistoriesOnlyGrow(t *testing.T) {
	r := newRelay(t)
	if err := r.ReplaceIn(History{2, 1000}, 900, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.ReplaceIn(History{1, 0}, 2000, nil); !errors.Is(err, ErrHistory) {
		t.Errorf("an earlier one: %v", err)
	}
	if err := r.ReplaceIn(History{2, 0}, 800, nil); !errors.Is(err, ErrOlder) {
		t.Errorf("an older list of the same: %v", err)
	}
	if err := r.ReplaceIn(History{2, 1500}, 950, nil); err != nil || r.Status().History.Lost != 1500 {
		t.Errorf("a list of the same: %v, %+v", err, r.Status())
	}
	if err := NewIntake(r).Yield(History{1, 0}, &wire.Event{Version: 700}, nil); err != nil ||
		r.Status().History != (History{1, 1500}) || r.Status().Version != 700 {
		t.Errorf("yielding: %v, %+v", err, r.Status())
	}
}

func TestRestorationKeepsTheHistory(t *testing.T) {
	r, again := newRelay(t), newRelay(t)
	if err := r.ReplaceIn(History{3, 1000}, 900, nil); err != nil {
		t.Fatal(err)
	}
	x, _ := r.Export()
	re := again.Restoration(x.From)
	re.In(x.History)
	if err := re.Finish(r.Status().ProgressAt); err != nil {
		t.Fatal(err)
	}
	if a, b := r.Status().History, again.Status().History; a != b {
		t.Errorf("%+v came back as %+v", a, b)
	}
}

// TestEachRestoreCounts: a cloud may be restored again before it has come as far as it was. That is another history all
// the same, and what was lost before stays lost.
func TestEachRestoreCounts(t *testing.T) {
	h := History{}
	for i, reached := range []uint64{1000, 400, 1200} {
		h = h.Next(reached)
		if want := (History{uint64(i) + 1, []uint64{1000, 1000, 1200}[i]}); h != want {
			t.Errorf("restored at %d: %v, want %v", reached, h, want)
		}
	}
}

// TestHistoriesAreBounded: a number that was made up leaves room for the next ones, and none wraps to the first.
func TestHistoriesAreBounded(t *testing.T) {
	for header, ok := range map[string]bool{
		"1/1000": true, "4294967296/0": true, "4294967297/0": false, "18446744073709551615/0": false,
		"1/9223372036854775808": false,
	} {
		if _, err := ParseHistory(header); (err == nil) != ok {
			t.Errorf("%s: %v", header, err)
		}
	}
	for _, n := range []uint64{maxHistory - 1, maxHistory, 1<<64 - 1} {
		if next := (History{Number: n}).Next(7); next != (History{maxHistory, 7}) {
			t.Errorf("behind %d: %v", n, next)
		}
	}
	r := newRelay(t)
	x := r.Restoration(5)
	x.In(History{Number: maxHistory/2 + 1})
	if err := x.Finish(time.Now()); err == nil || r.Status().Synced {
		t.Errorf("restored from a disk that was written in a history that nobody counted: %v", err)
	}
}
