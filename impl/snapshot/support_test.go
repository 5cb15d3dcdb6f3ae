package snapshot

import (
	"fmt"
	"hash/maphash"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const slices1 = "endpointslices.v1.discovery.k8s.io"

// world is a relay with everything around it that a keeper needs.
type world struct {
	t      testing.TB
	rnd    *rand.Rand
	clock  *clocktesting.FakeClock
	relay  *relay.Relay
	truth  map[uint64]string // digest of the state at each version that was reached; nil: not kept
	state  map[string]string // key to bytes
	reach  uint64
	uid    int
	large  bool // some objects of a list are
	logger *slog.Logger
}

func newWorld(t testing.TB, rnd *rand.Rand, ring int64) *world {
	t.Helper()
	w := &world{
		t: t, rnd: rnd, clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), truth: map[uint64]string{},
		state:  map[string]string{},
		logger: slog.New(slog.DiscardHandler),
	}
	w.relay = w.empty(ring)
	return w
}

func (w *world) empty(ring int64) *relay.Relay {
	w.t.Helper()
	res, err := relay.ParseResource(slices1)
	check(w.t, err)
	r, err := relay.New(relay.Config{Resource: res, RingBytes: ring, Clock: w.clock, Logger: w.logger})
	check(w.t, err)
	return r
}

func (w *world) keeper(r *relay.Relay, d disk.Disk) *keeper {
	c := Config{Dir: "flash", Clock: w.clock, Logger: w.logger}.withDefaults()
	return newKeeper(c, r, d)
}

func (w *world) object(key string, version uint64, size int) *wire.Object {
	w.t.Helper()
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: key, UID: types.UID(fmt.Sprint("uid-", w.uid)), ResourceVersion: wire.FormatVersion(version),
		Annotations: map[string]string{"fill": string(make([]byte, size))},
	}}
	raw, err := s.Marshal()
	check(w.t, err)
	o, err := wire.ParseObject(wire.Protobuf, raw)
	check(w.t, err)
	return o
}

// put changes or makes an object, as an event.
func (w *world) put(key string, size int) {
	w.t.Helper()
	w.reach++
	o := w.object(key, w.reach, size)
	check(w.t, w.relay.Apply(&wire.Event{Type: wire.Modified, Object: o, Version: w.reach}))
	w.state["ns/"+key] = string(o.Raw)
	w.note()
}

func (w *world) remove(key string) {
	w.t.Helper()
	w.reach++
	check(w.t, w.relay.Apply(&wire.Event{Type: wire.Deleted, Object: w.object(key, w.reach, 0), Version: w.reach}))
	delete(w.state, "ns/"+key)
	w.note()
}

func (w *world) bookmark() {
	w.t.Helper()
	w.reach += 1 + w.rnd.Uint64N(3)
	check(w.t, w.relay.Apply(&wire.Event{Type: wire.Bookmark, Version: w.reach}))
	w.note()
}

// list replaces the state by one in which about half is as before: a batch. contradict makes one that nothing leads to.
func (w *world) list(keys int, contradict bool) {
	w.t.Helper()
	before := w.reach
	var items []*wire.Object
	next := map[string]string{}
	for i := range keys {
		key := fmt.Sprint("o", i)
		old, have := w.state["ns/"+key]
		switch w.rnd.IntN(4) {
		case 0: // gone
			continue
		case 1, 2:
			if have {
				o, err := wire.ParseObject(wire.Protobuf, []byte(old))
				check(w.t, err)
				items = append(items, o)
				next["ns/"+key] = old
				continue
			}
		}
		w.uid++ // another object of the same name, sometimes
		w.reach++
		size := w.rnd.IntN(200)
		if w.large && w.rnd.IntN(4) == 0 { // a batch of several blocks
			size = 30 << 10
		}
		o := w.object(key, w.reach, size)
		items = append(items, o)
		next["ns/"+key] = string(o.Raw)
	}
	if contradict && before > 0 {
		o := w.object("liar", 1+w.rnd.Uint64N(before), 10)
		items = append(items, o)
		next["ns/liar"] = string(o.Raw)
	}
	w.reach += 1 + w.rnd.Uint64N(2)
	w.state = next
	check(w.t, w.relay.Replace(w.reach, items))
	w.note()
}

func (w *world) note() {
	if w.truth != nil {
		w.truth[w.reach] = digest(w.state)
	}
}

var seed = maphash.MakeSeed()

func digest(state map[string]string) string {
	var s strings.Builder
	for _, key := range slices.Sorted(maps.Keys(state)) {
		fmt.Fprintf(&s, "%q %d %x\n", key, len(state[key]), maphash.String(seed, state[key]))
	}
	return s.String()
}

// held are the states of a relay at both ends of its ring.
func held(t testing.TB, r *relay.Relay) (x *relay.Export, from, to string) {
	t.Helper()
	x, ok := r.Export()
	if !ok {
		t.Fatal("not synced")
	}
	_, objects := x.Objects()
	state := map[string]string{}
	for o := range objects {
		state[o.Key] = string(o.Raw)
	}
	from = digest(state)
	replay(state, x)
	return x, from, digest(state)
}

// replay does to a state what the changes of an export do.
func replay(state map[string]string, x *relay.Export) {
	for _, c := range x.Changes() {
		switch {
		case c.Cur == nil:
		case c.Deleted:
			delete(state, c.Cur.Key)
		default:
			state[c.Cur.Key] = string(c.Cur.Raw)
		}
	}
}
