package store

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/queue"
	"github.com/weir-edge/weir/impl/store/table"
)

func putStatus(t testing.TB, s *Store) {
	t.Helper()
	check(t, s.Queue().Put(queue.Write{
		Target: queue.Target{Kind: queue.NodeStatus, Name: "n"}, Base: []byte(`{}`), Ours: []byte(`{"a":1}`),
	}))
}

// TestEviction: a full store drops what was asked for least recently, never what the node needs, and stays within its
// bound.
func TestEviction(t *testing.T) {
	clock := fakeClock()
	s := open(t, Config{Dir: t.TempDir(), MaxBytes: 4 << 20, Clock: clock})
	defer s.Close()
	rnd := rand.New(rand.NewPCG(1, 1))
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	putStatus(t, s)
	for i := range 12 { // 600 kB each
		clock.Step(48 * time.Hour)
		shape := Shape{Component: fmt.Sprint("c", i), Resource: widgets, Form: JSON, Namespace: fmt.Sprint("n", i)}
		var items []*wire.Object
		for j := range 60 {
			items = append(items, item(t, fmt.Sprintf("n%d/w%d", i, j), 5, strings.Repeat("x", 5000+rnd.IntN(10000))))
		}
		list(t, s, shape, widgetKind, 10, items...)
		s.step(true)
		if i > 2 { // the first is asked for again and again
			first := shape
			first.Component, first.Namespace = "c0", "n0"
			if _, ok := s.Read(first); !ok {
				t.Fatalf("round %d: what was just asked for is gone", i)
			}
		}
	}
	st := s.Stats()
	if st.FileBytes > s.MaxBytes || st.Evicted == 0 || st.Errors > 0 {
		t.Errorf("%+v", st)
	}
	expect(t, "the kubelet's", read(t, s, kubelet()), "10: a/x@5")
	expect(t, "the oldest", get(s, widgets, JSON, "n1/w1"), "unknown")
	expect(t, "the newest", get(s, widgets, JSON, "n11/w1"), "@5")
	if s.Queue().Len() != 1 {
		t.Error("the queue is gone")
	}
	t.Logf("%+v", st)
}

// TestCrowded: if what the node needs does not fit, what fits is served, and the store says so.
func TestCrowded(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), MaxBytes: 1 << 20})
	defer s.Close()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	s.step(true)
	w := watch(t, s, kubelet(), podKind, 10)
	defer w.Close()
	for i := range 100 {
		w.Event(event(wire.Added, pod(t, fmt.Sprint("a/p", i), uint64(11+i), "fill="+strings.Repeat("x", 30<<10))))
	}
	s.step(true)
	if st := s.Stats(); st.Errors == 0 || st.LastError != table.ErrFull.Error() || st.FileBytes > 1<<20 {
		t.Errorf("%+v", st)
	}
	if got := read(t, s, kubelet()); !strings.HasPrefix(got, "110: ") {
		t.Errorf("from memory: %.60s", got)
	}
	for i := range 600 {
		w.Event(event(wire.Added, pod(t, fmt.Sprint("a/q", i), uint64(200+i), "fill="+strings.Repeat("x", 30<<10))))
	}
	if st := s.Stats(); st.PendingBytes > maxPending || st.GivenUp == 0 {
		t.Errorf("%+v", st)
	}
	expect(t, "a list that is not whole", read(t, s, kubelet()), "unknown")
	expect(t, "what is on the disk", get(s, pods, Protobuf, "a/x"), "@5")
}

// TestSweep: nothing is forgotten while the node is cut off; once the cloud has been back for an hour, what nobody asks
// for goes.
func TestSweep(t *testing.T) {
	clock := fakeClock()
	s := open(t, Config{Dir: t.TempDir(), Clock: clock})
	defer s.Close()
	asked, watched := Shape{Component: "asked", Resource: pods}, kubelet()
	old := Shape{Component: "old", Resource: widgets, Form: JSON}
	list(t, s, old, widgetKind, 10, item(t, "a/w", 5, ""))
	list(t, s, watched, podKind, 10, pod(t, "a/x", 5))
	w := watch(t, s, watched, podKind, 10)
	defer w.Close()
	s.Fresh(clock.Now())
	clock.Step(60 * 24 * time.Hour)
	list(t, s, asked, podKind, 10, pod(t, "a/x", 5), pod(t, "a/y", 5))
	s.sweep(clock.Now())
	expect(t, "cut off", get(s, widgets, JSON, "a/w"), "@5")
	s.Fresh(clock.Now())
	s.sweep(clock.Now())
	expect(t, "the cloud is just back", get(s, widgets, JSON, "a/w"), "@5")
	s.collections[old.encode()].asked = time.Time{} // the gets above count
	for range 130 {
		clock.Step(30 * time.Second)
		s.Fresh(clock.Now())
	}
	l, err := s.List(old, widgetKind)
	check(t, err)
	s.sweep(clock.Now())
	expect(t, "a list is under way", get(s, widgets, JSON, "a/w"), "@5")
	s.collections[old.encode()].asked = time.Time{}
	l.Close()
	s.sweep(clock.Now())
	expect(t, "nobody asked", get(s, widgets, JSON, "a/w"), "unknown")
	expect(t, "what is watched", read(t, s, watched), "10: a/x@5")
	expect(t, "what was asked for", read(t, s, asked), "10: a/x@5 a/y@5")
	w.Event(event(wire.Deleted, pod(t, "a/x", 11)))
	s.sweep(clock.Now())
	expect(t, "what the cloud deleted", get(s, pods, Protobuf, "a/x"), "absent")
}
