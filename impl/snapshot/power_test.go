package snapshot

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/testkit"
)

const ringBytes = 256 << 10

// TestPowerCuts: whatever happened, and wherever the power is cut, what is restored is a state that the relay was in,
// and none older than the last that was made durable. The same holds for the oldest state from which a watch resumes.
func TestPowerCuts(t *testing.T) {
	runs := 400
	if testing.Short() {
		runs = 100
	}
	restored, torn := 0, 0
	for seed := range runs {
		rnd := rand.New(rand.NewPCG(uint64(seed), 9))
		w := newWorld(t, rnd, ringBytes)
		w.large = true
		disk := testkit.NewFlash(rnd)
		disk.CutAt = 1 + rnd.IntN(120)
		full := rnd.IntN(3) == 0
		disk.Fail = func(string) bool { return full && rnd.IntN(6) == 0 }
		durable := uint64(0)
		for !disk.Down {
			k := w.keeper(w.relay, disk)
			k.least = 8 << 10
			k.restore() // the first time: nothing. Later: a process that was killed, the relay of which is another
			if s := w.relay.Status(); s.Synced {
				verify(t, w, seed, w.relay.Status().Version, durable)
				w.follow()
			}
			for life := 5 + rnd.IntN(60); life > 0 && !disk.Down; life-- {
				w.live()
				last := life == 1 && rnd.IntN(2) == 0
				k.step(t.Context(), last)
				if v := k.did.read().Version; v > 0 && v < durable {
					t.Fatalf("seed %d: the file goes back from %d to %d", seed, durable, v)
				} else {
					durable = max(durable, v)
				}
				w.clock.Step(time.Duration(rnd.IntN(20)) * time.Second)
			}
			if !disk.Down {
				w.relay = w.empty(ringBytes)
			}
		}
		after := disk.Restart()
		w.relay = w.empty(ringBytes)
		k := w.keeper(w.relay, after)
		k.restore()
		if s := k.did.read(); s.Errors > 0 {
			t.Fatalf("seed %d: %s", seed, s.LastError)
		}
		s := w.relay.Status()
		if !s.Synced {
			if durable > 0 {
				t.Fatalf("seed %d: nothing is restored, version %d was durable", seed, durable)
			}
			continue
		}
		restored++
		if s.Version < w.reach {
			torn++
		}
		verify(t, w, seed, s.Version, durable)
	}
	t.Logf("%d of %d restored, %d of them to a state before the last", restored, runs, torn)
	if restored < runs/2 || torn < runs/20 {
		t.Error("the test does not test much")
	}
}

// live lets something happen to the relay.
func (w *world) live() {
	key := fmt.Sprint("o", w.rnd.IntN(12))
	switch n := w.rnd.IntN(20); {
	case !w.relay.Status().Synced || n == 0:
		w.list(12, false)
	case n == 1:
		w.list(12, w.rnd.IntN(2) == 0)
	case n < 4:
		w.bookmark()
	case n < 6:
	case n < 9:
		w.remove(key)
	case n == 9:
		w.put(key, 30<<10)
	default:
		for range 1 + w.rnd.IntN(5) {
			w.put(fmt.Sprint("o", w.rnd.IntN(12)), w.rnd.IntN(500))
		}
	}
}

// follow lets the source go on where the restored relay stands: what the relay lost, it is told again.
func (w *world) follow() {
	x, _, to := held(w.t, w.relay)
	if x.To == w.reach && to == digest(w.state) {
		return
	}
	w.state = map[string]string{}
	_, objects := x.Objects()
	for o := range objects {
		w.state[o.Key] = string(o.Raw)
	}
	replay(w.state, x)
	// Versions go on above all that were ever reached: those in between are never reached again.
	w.list(12, false)
}

func verify(t *testing.T, w *world, seed int, version, durable uint64) {
	t.Helper()
	if version < durable {
		t.Fatalf("seed %d: restored at %d, %d was durable", seed, version, durable)
	}
	x, from, to := held(t, w.relay)
	if want, ok := w.truth[version]; !ok || want != to {
		t.Fatalf("seed %d: the state restored at %d was never reached (%v)", seed, version, ok)
	}
	if want, ok := w.truth[x.From]; !ok || want != from {
		t.Fatalf("seed %d: the oldest state restored, at %d, was never reached", seed, x.From)
	}
	if !w.relay.Resumable(x.From) || !w.relay.Resumable(version) {
		t.Fatalf("seed %d: no watch can resume at %d or %d", seed, x.From, version)
	}
}
