package store

import (
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/table"
)

// TestRefused: what the engine does not take is dropped, and keeps nothing else from the disk.
func TestRefused(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	defer func() { s.Close() }()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	s.mu.Lock()
	s.put(table.Documents, strings.Repeat("x", 40_000), []byte("a"))
	s.put(table.Documents, "", []byte("b"))
	s.mu.Unlock()
	s.step(true)
	if st := s.Stats(); st.LastError != "" || st.Refused != 2 || st.PendingBytes > 0 || st.Flushes != 1 {
		t.Errorf("%+v", st)
	}
	s = again(t, s)
	expect(t, "what was kept", read(t, s, kubelet()), "10: a/x@5")
}

// TestLongShapes: a collection or an object with a name that is too long is not recorded, and anyone who records it is
// told.
func TestLongShapes(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	defer func() { s.Close() }()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	long := strings.Repeat("!a,", 14_000)
	for name, shape := range map[string]Shape{
		"labels": {
			Component: "curl", Resource: pods, Labels: long,
		}, "fields": {Component: "curl", Resource: pods, Fields: long},
		"a name":      One("curl", pods, JSON, Key{"a", long[:32_400]}),
		"a namespace": {Component: "curl", Resource: pods, Namespace: long},
		"a resource":  {Component: "curl", Resource: Resource{Group: "g", Version: "v1", Name: long}},
	} {
		if l, err := s.List(shape, podKind); err == nil || !strings.Contains(err.Error(), "at most") {
			l.Close()
			t.Errorf("%s of %d bytes can be recorded: %v", name, len(long), err)
		}
		if w, err := s.Watch(shape, podKind, 5, false); err == nil {
			w.Close()
			t.Errorf("%s of %d bytes can be watched", name, len(long))
		}
	}
	if err := s.NotFound("curl", pods, JSON, Key{"a", long[:32_400]}); err == nil {
		t.Error("that there is no object of a long name can be recorded")
	}
	all := Shape{Component: "curl", Resource: widgets, Form: JSON}
	list(t, s, all, widgetKind, 10, item(t, "a/w", 5, ""), item(t, "a/"+long[:9000], 6, ""))
	expect(t, "a list with an object of a long name", read(t, s, all), "unknown")
	w := watch(t, s, kubelet(), podKind, 10, event(wire.Added, pod(t, "a/y", 11)))
	w.Close()
	s.step(true)
	if st := s.Stats(); st.LastError != "" || st.Refused != 2 || st.PendingBytes > 0 {
		t.Errorf("%+v", st)
	}
	s = again(t, s)
	expect(t, "what was kept", read(t, s, kubelet()), "11: a/x@5 a/y@11")
}
