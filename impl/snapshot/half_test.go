package snapshot

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/testkit"
)

// TestHalfABatch: after a power cut only some blocks of a batch are on the disk. Whatever the next process writes
// first, the one after it restores.
func TestHalfABatch(t *testing.T) {
	for name, more := range map[string]func(*world){
		"a change":   func(w *world) { w.put("o0", 7) },
		"a deletion": func(w *world) { w.remove("o0") },
		"a bookmark": func(w *world) { w.bookmark() },
		"a batch":    func(w *world) { w.refill(3) },
	} {
		t.Run(name, func(t *testing.T) {
			halves := 0
			for blocks := 1; ; blocks++ {
				rnd := rand.New(rand.NewPCG(1, uint64(blocks)))
				w, disk := newWorld(t, rnd, 1<<20), testkit.NewFlash(rnd)
				k := w.keeper(w.relay, disk)
				w.refill(3)
				k.step(t.Context(), false)
				cut, before, state := k.pos.offset, w.reach, maps.Clone(w.state)
				w.refill(12)
				k.step(t.Context(), false)
				k.close()
				file := disk.Files[fileName]
				for range blocks {
					cut += headSize + int64(binary.LittleEndian.Uint32(file.Now[cut+1:]))
				}
				if cut >= int64(len(file.Now)) {
					break
				}
				halves++
				file.Now = file.Now[:cut]

				w.relay, w.state = w.empty(1<<20), state
				k = w.keeper(w.relay, disk)
				k.restore()
				if v := w.relay.Status().Version; v != before {
					t.Fatalf("%d blocks of a batch: restored at %d, before the batch it was %d", blocks, v, before)
				}
				more(w)
				k.step(t.Context(), true)
				k.close()

				w.relay = w.empty(1 << 20)
				k = w.keeper(w.relay, disk)
				k.restore()
				if s := k.did.read(); s.Errors > 0 {
					t.Fatalf("%d blocks of a batch, then %s: %s", blocks, name, s.LastError)
				}
				verify(t, w, blocks, w.relay.Status().Version, w.reach)
				k.close()
			}
			if halves < 3 {
				t.Errorf("%d files end inside a batch: the test does not test much", halves)
			}
		})
	}
}

// refill replaces all objects by large ones: a batch, of several blocks if they are many.
func (w *world) refill(objects int) {
	w.t.Helper()
	w.state = map[string]string{}
	var items []*wire.Object
	for i := range objects {
		w.reach++
		o := w.object(fmt.Sprint("o", i), w.reach, 30<<10)
		items = append(items, o)
		w.state[o.Key] = string(o.Raw)
	}
	w.reach++
	check(w.t, w.relay.Replace(w.reach, items))
	w.note()
}
