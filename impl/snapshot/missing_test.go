package snapshot

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
)

// TestMissingObjects: a file that has not as many objects as it says, at its head or at its end, is none.
func TestMissingObjects(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)), 1<<20)
	for _, c := range []struct{ head, have, end int }{{2, 2, 2}, {2, 1, 2}, {1, 2, 1}, {2, 2, 1}, {1, 2, 2}, {2, 1, 1}} {
		var b bytes.Buffer
		e := newEncoder(&b, position{})
		e.start()
		e.head(w.relay.Resource(), relay.History{}, 10, w.clock.Now(), c.head)
		for i := range c.have {
			e.object(w.object(string(rune('a'+i)), uint64(i+1), 0))
		}
		e.whole(c.end)
		check(t, e.end())
		r, _, err := w.load(b.Bytes())
		if right := c.head == c.have && c.have == c.end; right != (err == nil) || !right && !errors.Is(err, ErrDamaged) {
			t.Errorf("%+v: %v, %d objects", c, err, r.Status().Objects)
		}
	}
}
