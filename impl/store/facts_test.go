package store

import (
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/table"
)

// TestFacts: of two facts about an object the same one is newer, in whichever order they come.
func TestFacts(t *testing.T) {
	facts := []*fact{ // each newer than all before
		{epoch: 1, version: 5},
		{epoch: 1, version: 7, condition: left},
		{epoch: 1, version: 7},
		{epoch: 1, version: 7, condition: gone},
		{epoch: 1, version: 8},
		{epoch: 2, version: 1},
		{epoch: 2, version: 1, condition: gone},
	}
	for i, older := range facts {
		if older.newer(older) {
			t.Errorf("%+v is newer than itself", older)
		}
		for _, f := range facts[i+1:] {
			if !f.newer(older) || older.newer(f) {
				t.Errorf("%+v should be newer than %+v: %v, and the other way round: %v", f, older, f.newer(older), older.newer(f))
			}
		}
	}
}

// TestWatchInAnotherHistory: a watch in another history of the cloud says nothing of what happened before it. What is
// gone meanwhile may not be shown as if it were in a complete list.
func TestWatchInAnotherHistory(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	defer s.Close()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/gone", 5), pod(t, "a/x", 6))
	s.NewHistory()
	for _, from := range []uint64{8, 10} {
		if s.Covers(kubelet(), from) {
			t.Errorf("what was recorded up to 10 covers a watch from %d in another history", from)
		}
	}
	w := watch(t, s, kubelet(), podKind, 8, event(wire.Modified, pod(t, "a/x", 9)))
	defer w.Close()
	expect(t, "after a watch in another history", read(t, s, kubelet()), "unknown")
}

// TestOlderRowsDoNotWin: what could not be written goes below what came since.
func TestOlderRowsDoNotWin(t *testing.T) {
	older, newer := table.NewOverlay(), table.NewOverlay()
	older.Set(0, "both", []byte("old"))
	older.Set(0, "deleted", []byte("old"))
	older.Set(0, "alone", []byte("old"))
	newer.Set(0, "both", []byte("new"))
	newer.Set(0, "deleted", nil)
	newer.Under(older)
	for key, want := range map[string]string{"both": "new", "deleted": "", "alone": "old"} {
		if got, ok := newer.Get(0, key); !ok || string(got) != want {
			t.Errorf("%s: %q %v, want %q", key, got, ok, want)
		}
	}
}
