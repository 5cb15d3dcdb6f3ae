package moved

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// world is a cloud, a relay that hears it late, and what a pool says of its pods.
type world struct {
	t       *testing.T
	rnd     *rand.Rand
	cloud   []wire.Event // all that happened there, in order
	heard   int          // how much of that the relay has heard
	set     *Set
	view    *View
	says    map[string]uint64 // number of the last statement of a node
	clients []*client
	counts  map[string]int // of what happened
}

const prefix = "10.0."

func newWorld(t *testing.T, rnd *rand.Rand, counts map[string]int) *world {
	w := &world{t: t, rnd: rnd, counts: counts, set: pool(t, "a", "b"), says: map[string]uint64{}}
	w.view = NewView(wire.Protobuf, w.set.SliceForm(wire.Protobuf, func(string, string) bool { return false }), nil)
	for range 4 {
		w.write()
	}
	w.hear(len(w.cloud))
	return w
}

// write changes one slice in the cloud. Some pods are of nodes of the pool. A version may leave others out, which are
// of other resources.
func (w *world) write() {
	version := uint64(3 << 20) // so that two forms have one version once in a million
	if n := len(w.cloud); n > 0 {
		version = w.cloud[n-1].Version + 1 + uint64(w.rnd.IntN(2))
	}
	state := upTo(w.cloud, len(w.cloud))
	name := fmt.Sprintf("web-%d", w.rnd.IntN(4))
	was, there := state["shop/"+name]
	ev := wire.Event{Type: wire.Added, Version: version}
	if there {
		if ev.Type = wire.Modified; w.rnd.IntN(4) == 0 {
			gone, err := was.WithVersion(wire.Protobuf, version)
			if err != nil {
				w.t.Fatal(err)
			}
			ev.Type, ev.Object = wire.Deleted, gone
			w.cloud = append(w.cloud, ev)
			return
		}
	}
	var points []string
	for _, pod := range []string{"p0@a", "p1@a", "p2@b", "p3@z"} {
		if w.rnd.IntN(3) > 0 {
			points = append(points, fmt.Sprintf("%s %s%c.%d rs", pod, prefix, pod[1], 1+w.rnd.IntN(3)))
		}
	}
	s := sliceOf(name, discoveryv1.AddressTypeIPv4, points...)
	s.ResourceVersion = strconv.FormatUint(version, 10)
	s.Annotations = map[string]string{"base": s.ResourceVersion}
	raw, err := s.Marshal()
	if err != nil {
		w.t.Fatal(err)
	}
	if ev.Object, err = wire.ParseObject(wire.Protobuf, raw); err != nil {
		w.t.Fatal(err)
	}
	w.cloud = append(w.cloud, ev)
}

// upTo is the state behind the first n events.
func upTo(events []wire.Event, n int) map[string]*wire.Object {
	state := map[string]*wire.Object{}
	for _, ev := range events[:n] {
		if ev.Type == wire.Deleted {
			delete(state, ev.Object.Key)
		} else {
			state[ev.Object.Key] = ev.Object
		}
	}
	return state
}

func (w *world) hear(n int) { w.heard = min(w.heard+n, len(w.cloud)) }

// reached is the version of the relay.
func (w *world) reached() uint64 { return w.cloud[w.heard-1].Version }

func (w *world) holds() map[string]*wire.Object { return upTo(w.cloud, w.heard) }

// objects are those of the relay, by key.
func (w *world) objects() iter.Seq[*wire.Object] {
	state := w.holds()
	return func(yield func(*wire.Object) bool) {
		for _, key := range slices.Sorted(maps.Keys(state)) {
			if !yield(state[key]) {
				return
			}
		}
	}
}

// correct has a node say something else of its pods, and sometimes makes the hub begin again with what it has kept.
func (w *world) correct() {
	node, pods := "a", []string{"p0", "p1"}
	if w.rnd.IntN(2) == 0 {
		node, pods = "b", []string{"p2"}
	}
	var all []string
	for _, p := range pods {
		switch address := fmt.Sprintf("%s%c.%d", prefix, p[1], 1+w.rnd.IntN(3)); w.rnd.IntN(5) {
		case 0, 1:
			all = append(all, p+"="+address)
		case 2:
			all = append(all, p+"~"+address)
		case 3:
			all = append(all, p+"!")
		}
	}
	w.states(node, all...)
}

func (w *world) states(node string, all ...string) {
	w.says[node]++
	says(w.t, w.set, node, w.says[node], all...)
}

// forget ends corrections that were withdrawn.
func (w *world) forget() { w.set.Settle(Reached{}) }

// restart is a hub that begins again, with what it kept.
func (w *world) restart() { w.view = NewView(w.view.enc, w.view.form, w.view.Owed()) }
