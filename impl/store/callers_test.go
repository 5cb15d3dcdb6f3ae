package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestCallersApart: one caller cannot drop what others live from, whatever it calls itself, however much it asks for,
// and although it asked last.
func TestCallersApart(t *testing.T) {
	const own, other = "system:serviceaccount:a:greedy", "system:serviceaccount:b:modest"
	as := func(i int) string { return ComponentOf(fmt.Sprint("agent", i), own, fmt.Sprint("user", i)) }
	modest := Shape{Component: ComponentOf("agent", other, ""), Resource: widgets, Form: JSON, Namespace: "b"}
	floods := map[string]func(t *testing.T, s *Store, i int){
		"names that do not exist": func(t *testing.T, s *Store, i int) {
			for j := range 1500 {
				check(t, s.NotFound(as(i*1500+j), widgets, JSON, Key{"a", fmt.Sprint("none", i, "-", j)}))
			}
		},
		"large objects": func(t *testing.T, s *Store, i int) {
			shape := Shape{Component: as(i), Resource: widgets, Form: JSON, Namespace: fmt.Sprint("a", i)}
			list(t, s, shape, widgetKind, 10, item(t, fmt.Sprintf("a%d/w", i), 5, strings.Repeat("x", 400<<10)))
		},
	}
	for name, flood := range floods {
		t.Run(name, func(t *testing.T) {
			clock := fakeClock()
			s := open(t, Config{Dir: t.TempDir(), MaxBytes: 4 << 20, Clock: clock})
			defer s.Close()
			list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
			list(t, s, modest, widgetKind, 10, item(t, "b/w", 5, "small"))
			for i := range 16 {
				clock.Step(48 * time.Hour)
				flood(t, s, i)
				s.step(true)
			}
			expect(t, "the kubelet's", read(t, s, kubelet()), "10: a/x@5")
			expect(t, "another caller's", read(t, s, modest), "10: b/w@5")
			if st := s.Stats(); st.Collections > maxOwned+2 || st.LastError != "" || st.Evicted == 0 || st.Crowded {
				t.Errorf("%+v", st)
			}
		})
	}
}

// TestCrowdedByOne: a caller whose lists come faster than the disk takes them misses them itself; what others changed
// is kept.
func TestCrowdedByOne(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	defer s.Close()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	greedy := Shape{Component: ComponentOf("agent", "system:serviceaccount:a:greedy", ""), Resource: widgets, Form: JSON}
	l, err := s.List(greedy, widgetKind)
	check(t, err)
	w := watch(t, s, Shape{Component: greedy.Component, Resource: secrets, Form: JSON}, secretKind, 10)
	for i := range 60 { // 24 MB; nobody writes them
		l.Add(item(t, fmt.Sprint("a/w", i), 5, strings.Repeat("x", 400<<10)))
		w.Event(event(wire.Added, item(t, fmt.Sprint("a/s", i), uint64(11+i), strings.Repeat("x", 1000))))
	}
	l.Commit(10)
	l.Close()
	w.Close()
	watch(t, s, kubelet(), podKind, 10, event(wire.Added, pod(t, "a/y", 11))).Close()
	if st := s.Stats(); st.GivenUp > 0 || st.PendingBytes > maxPending {
		t.Errorf("%+v", st)
	}
	expect(t, "the kubelet's", read(t, s, kubelet()), "11: a/x@5 a/y@11")
	expect(t, "the caller's own list", read(t, s, greedy), "unknown")
	s.step(true)
	s = again(t, s)
	expect(t, "the kubelet's, after a restart", read(t, s, kubelet()), "11: a/x@5 a/y@11")
}

// TestCrowdedStream: a streaming list of which objects found no room is no complete list at its end.
func TestCrowdedStream(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	defer s.Close()
	greedy := Shape{Component: ComponentOf("agent", "system:serviceaccount:a:greedy", ""), Resource: widgets, Form: JSON}
	w, err := s.Watch(greedy, widgetKind, 0, true)
	check(t, err)
	defer w.Close()
	for i := range 60 { // 24 MB; nobody writes them
		w.Event(event(wire.Added, item(t, fmt.Sprint("a/w", i), uint64(5+i), strings.Repeat("x", 400<<10))))
	}
	s.step(true)
	w.Event(&wire.Event{Type: wire.Bookmark, Version: 100, InitialEnd: true}) // for which there is room again
	expect(t, "the caller's own list", read(t, s, greedy), "unknown")
}

// TestSweepBesideLists: lists that are always under way stop no sweep, and lose nothing by one.
func TestSweepBesideLists(t *testing.T) {
	clock := fakeClock()
	s := open(t, Config{Dir: t.TempDir(), Clock: clock})
	defer s.Close()
	old := Shape{Component: "old", Resource: widgets, Form: JSON}
	list(t, s, old, widgetKind, 10, item(t, "a/w", 5, ""))
	clock.Step(60 * 24 * time.Hour)
	for range 130 {
		clock.Step(30 * time.Second)
		s.Fresh(clock.Now())
	}
	mine := Shape{
		Component: ComponentOf("curl", "system:serviceaccount:a:b", ""), Resource: widgets, Form: JSON, Namespace: "b",
	}
	l, err := s.List(mine, widgetKind)
	check(t, err)
	defer l.Close()
	l.Add(item(t, "b/v", 6, ""))
	s.sweep(clock.Now())
	expect(t, "nobody asked", get(s, widgets, JSON, "a/w"), "unknown")
	l.Commit(12)
	expect(t, "the list under way", read(t, s, mine), "12: b/v@6")
}
