package moved

import (
	"bytes"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestWatch: clients list, watch, break off, resume, also ahead of the relay, and see the hub begin again. At each rest
// they have what the corrections make of the relay's state, and their handlers were told all of it. No version is one
// that the cloud has for something else. When the corrections have ended they have the cloud's own state.
func TestWatch(t *testing.T) {
	seeds, first := uint64(60), uint64(1)
	if testing.Short() {
		seeds = 50
	}
	if v := os.Getenv("WEIR_SEED"); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seeds, first = 1, seed
	}
	t.Logf("seeds %d to %d; one of them by WEIR_SEED", first, first+seeds-1)
	counts := map[string]int{}
	for seed := first; seed < first+seeds && !t.Failed(); seed++ {
		if schedule(t, rand.New(rand.NewPCG(seed, 35)), counts); t.Failed() {
			t.Logf("seed %d", seed)
		}
	}
	t.Logf("%v", counts)
	for _, what := range []string{"ahead", "breaks", "corrected"} {
		if counts[what] == 0 && seeds > 1 {
			t.Errorf("%s: never", what)
		}
	}
}

func schedule(t *testing.T, rnd *rand.Rand, counts map[string]int) {
	w := newWorld(t, rnd, counts)
	for i := range 4 {
		c := &client{w: w, bookmarks: i != 3, store: map[string]*wire.Object{}, told: map[string]*wire.Object{}}
		w.clients = append(w.clients, c)
		c.lists(i == 1)
	}
	for range 60 {
		switch c := w.clients[rnd.IntN(len(w.clients))]; rnd.IntN(10) {
		case 0, 1:
			w.write()
		case 2, 3:
			w.hear(1 + rnd.IntN(3))
		case 4, 5:
			w.changes()
		case 6:
			if c.watch == nil {
				c.resumes()
			} else if rnd.IntN(2) == 0 {
				c.breaks()
			}
		case 7:
			if c.watch == nil && rnd.IntN(2) == 0 {
				c.lists(rnd.IntN(2) == 0)
			}
		case 8:
			if c.watch != nil && !c.ahead && !c.torn {
				c.elsewhere()
			}
		case 9:
			w.begins()
		}
		for _, c := range w.clients {
			if rnd.IntN(2) == 0 {
				c.drains()
			}
		}
		if t.Failed() {
			return
		}
	}
	w.ends()
}

// changes has a node say something else, and shows it to clients.
func (w *world) changes() {
	w.correct()
	if w.rnd.IntN(2) == 0 {
		w.forget()
	}
	w.view.Prune(w.objects())
	for _, c := range w.clients {
		if c.watch != nil {
			c.take(c.watch.Changed(w.objects()))
		}
	}
}

// begins ends the hub, and has it begin again. Watches break.
func (w *world) begins() {
	if w.rnd.IntN(4) == 0 {
		w.restart()
		for _, c := range w.clients {
			c.breaks()
		}
	}
}

// elsewhere has a client go on at the cloud for a moment, if it has nothing that is corrected. Then it is ahead.
func (c *client) elsewhere() {
	c.drains()
	if c.watch == nil || len(c.watch.has) > 0 || !c.bookmarks {
		return
	}
	c.breaks()
	for _, ev := range c.w.cloud[c.w.heard:] {
		if c.w.rnd.IntN(4) == 0 {
			break
		}
		if c.at = ev.Version; ev.Type == wire.Deleted {
			delete(c.store, ev.Object.Key)
			delete(c.told, ev.Object.Key)
		} else {
			c.store[ev.Object.Key], c.told[ev.Object.Key] = ev.Object, ev.Object
		}
	}
	c.high = min(c.at, c.w.reached()) // rule 4: it may go back to where the relay is
	c.resumes()
}

// ends ends all corrections, has the relay hear all, and has clients go on at the cloud.
func (w *world) ends() {
	w.states("a")
	w.states("b")
	w.forget()
	w.hear(len(w.cloud))
	for _, c := range w.clients {
		if c.watch != nil {
			c.take(c.watch.Changed(w.objects()))
		}
	}
	for _, c := range w.clients {
		for c.drains(); c.watch == nil; c.drains() {
			c.resumes()
		}
		for key, o := range w.holds() {
			if g := c.store[key]; g == nil || g.Version != o.Version || !bytes.Equal(g.Raw, o.Raw) {
				c.failed("in the end %s is not the cloud's own", key)
			}
		}
		if len(c.store) != len(w.holds()) {
			c.failed("in the end it has %d objects, the cloud %d", len(c.store), len(w.holds()))
		}
		for key, is := range c.watch.has { // a client that was ahead has the cloud's own form of some
			if is.content != 0 {
				c.failed("in the end %s is said to be corrected", key)
			}
		}
		if c.bookmarks && c.at > w.reached() {
			c.failed("in the end it is at %d, and the cloud at %d", c.at, w.reached())
		}
	}
}
