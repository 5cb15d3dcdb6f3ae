package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store/queue"
	"github.com/weir-edge/weir/impl/store/table"
)

// TestShapes: shapes of one component and resource stand side by side, share their objects, and answer gets and lists
// that they prove, before and after a restart.
func TestShapes(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	all := Shape{Component: "agent", Resource: pods, Namespace: "a"}
	blue := Shape{Component: "agent", Resource: pods, Labels: "color=blue"}
	meta := Shape{Component: "agent", Resource: pods, Form: ProtobufMetadata, Namespace: "a"}
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5, "color=blue"), pod(t, "b/y", 7))
	list(t, s, all, podKind, 11, pod(t, "a/x", 5, "color=blue"), pod(t, "a/z", 11))
	list(t, s, blue, podKind, 12, pod(t, "a/x", 5, "color=blue"), pod(t, "c/w", 12, "color=blue"))
	check(t, s.NotFound("agent", pods, Protobuf, Key{"d", "none"}))
	for _, moment := range []string{"in memory", "on the disk"} {
		t.Run(moment, func(t *testing.T) {
			expect(t, "the kubelet's", read(t, s, kubelet()), "10: a/x@5 b/y@7")
			expect(t, "a namespace", read(t, s, all), "11: a/x@5 a/z@11")
			expect(t, "a label", read(t, s, blue), "12: a/x@5 c/w@12")
			other := all
			other.Component, other.Labels = "somebody", "color=blue"
			expect(t, "a part of all that are blue", read(t, s, other), "12: a/x@5")
			other.Labels, other.Fields = "", "metadata.name=z"
			expect(t, "one name of it", read(t, s, other), "11: a/z@11")
			expect(t, "metadata of a list of objects", read(t, s, meta), "11: a/x@5 a/z@11")
			other.Fields = "spec.nodeName=m"
			expect(t, "a field that nobody here can judge", read(t, s, other), "unknown")
			expect(t, "all pods", read(t, s, Shape{Component: "agent", Resource: pods}), "unknown")
			for key, want := range map[string]string{
				"a/x": "@5", "b/y": "@7", "c/w": "@12", "a/none": "absent", "d/none": "absent", "b/none": "unknown",
				"c/none": "unknown",
			} {
				expect(t, key, get(s, pods, Protobuf, key), want)
			}
			expect(t, "in another form", get(s, pods, JSON, "a/x"), "@5")
			if a := s.Get("agent", pods, ProtobufMetadata, Key{"a", "x"}); a.Kind.Kind != "PartialObjectMetadata" ||
				a.Form != ProtobufMetadata {
				t.Errorf("metadata: %+v", a)
			}
			if a := s.Get("agent", pods, Protobuf, Key{"a", "x"}); string(a.Object.Raw) != string(
				pod(t, "a/x", 5, "color=blue").Raw) || a.Kind != podKind {
				t.Errorf("the bytes are others: %+v", a)
			}
		})
		s = again(t, s)
	}
	defer s.Close()
	if n := countRows(s, table.Objects); n != 4 {
		t.Errorf("4 objects take %d rows", n)
	}
}

func countRows(s *Store, in table.Kind) (n int) {
	s.scan(in, "", func(string, []byte) { n++ })
	return n
}

// TestWatch: what a watch shows counts at once, for its own collection and for the objects of all.
func TestWatch(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	all := Shape{Component: "agent", Resource: pods}
	blue := Shape{Component: "agent", Resource: pods, Labels: "color=blue"}
	list(t, s, all, podKind, 10, pod(t, "a/x", 5, "color=blue"), pod(t, "a/y", 6, "color=blue"))
	list(t, s, blue, podKind, 10, pod(t, "a/x", 5, "color=blue"), pod(t, "a/y", 6, "color=blue"))
	b := watch(t, s, blue, podKind, 10, event(wire.Deleted, pod(t, "a/x", 11, "color=blue")))
	expect(t, "it left blue", read(t, s, blue), "11: a/y@6")
	expect(t, "whether it is gone, all does not say yet", read(t, s, all), "10: a/x@5 a/y@6")
	expect(t, "nor does a get", get(s, pods, Protobuf, "a/x"), "@5")
	w := watch(t, s, all, podKind, 10, event(wire.Modified, pod(t, "a/x", 11, "color=red")),
		event(wire.Deleted, pod(t, "a/y", 12)))
	expect(t, "all", read(t, s, all), "12: a/x@11")
	expect(t, "what is gone", get(s, pods, Protobuf, "a/y"), "absent")
	expect(t, "is gone for all", read(t, s, blue), "11:")
	w.Event(&wire.Event{Type: wire.Bookmark, Version: 20})
	w.Event(event(wire.Modified, pod(t, "a/x", 9)))
	expect(t, "a bookmark moves it, an old event does not", read(t, s, all), "20: a/x@11")
	b.Close()
	w.Close()
	s = again(t, s)
	defer s.Close()
	expect(t, "after a restart", read(t, s, all), "20: a/x@11")
	list(t, s, blue, podKind, 30)
	expect(t, "an object in no list any more", get(s, pods, Protobuf, "a/x"), "@11")
	s.mu.Lock()
	s.forget(s.collections[all.encode()])
	s.mu.Unlock()
	watch(t, s, blue, podKind, 30, event(wire.Added, pod(t, "a/z", 31, "color=blue")),
		event(wire.Deleted, pod(t, "a/z", 32, "color=blue"))).Close()
	expect(t, "an object that left the only list that showed it", get(s, pods, Protobuf, "a/z"), "unknown")
}

// TestStreamingList: initial events count from their end on, as a list.
func TestStreamingList(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	defer s.Close()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/old", 5))
	w, err := s.Watch(kubelet(), podKind, 0, true)
	check(t, err)
	w.Event(event(wire.Added, pod(t, "a/x", 15)))
	expect(t, "until then the old list", read(t, s, kubelet()), "10: a/old@5")
	w.Event(&wire.Event{Type: wire.Bookmark, Version: 20, InitialEnd: true})
	expect(t, "from then on the new one", read(t, s, kubelet()), "20: a/x@15")
	w.Event(event(wire.Added, pod(t, "a/y", 21)))
	expect(t, "and events", read(t, s, kubelet()), "21: a/x@15 a/y@21")
	w.Close()
	w, err = s.Watch(kubelet(), podKind, 0, true)
	check(t, err)
	w.Event(event(wire.Added, pod(t, "a/x", 15)))
	w.Close()
	expect(t, "one that breaks off is none", read(t, s, kubelet()), "21: a/x@15 a/y@21")
}

// TestGap: a client that saw more than the store had written leaves a gap in what the store records of it.
func TestGap(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	defer s.Close()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	for version, want := range map[uint64]bool{9: true, 10: true, 15: false} {
		if got := s.Covers(kubelet(), version); got != want {
			t.Errorf("covers %d: %v", version, got)
		}
	}
	list(t, s, kubelet(), podKind, 15, pod(t, "a/y", 15))
	w := watch(t, s, kubelet(), podKind, 15)
	w.Event(event(wire.Added, pod(t, "a/w", 16)))
	expect(t, "caught up", read(t, s, kubelet()), "16: a/w@16 a/y@15")
	w.Close()
	w = watch(t, s, kubelet(), podKind, 40)
	w.Event(event(wire.Added, pod(t, "a/z", 41)))
	expect(t, "with events missing, it is no list", read(t, s, kubelet()), "unknown")
	expect(t, "but objects are known", get(s, pods, Protobuf, "a/z"), "@41")
	if st := s.Stats(); st.Collections-st.Complete != 1 {
		t.Errorf("incomplete: %+v", st)
	}
	list(t, s, kubelet(), podKind, 42, pod(t, "a/z", 41))
	expect(t, "a list mends that", read(t, s, kubelet()), "42: a/z@41")
	w.Gap()
	expect(t, "an event that could not be read", read(t, s, kubelet()), "unknown")
	w.Close()
}

// TestLaggingServer: an older list does not undo a newer one, unless the cloud has another history.
func TestLaggingServer(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	defer s.Close()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 10))
	list(t, s, kubelet(), podKind, 8, pod(t, "a/x", 5), pod(t, "a/y", 8))
	expect(t, "an older list", read(t, s, kubelet()), "10: a/x@10")
	s.NewHistory()
	s = again(t, s)
	expect(t, "another history, before it shows anything", read(t, s, kubelet()), "10: a/x@10")
	list(t, s, kubelet(), podKind, 8, pod(t, "a/x", 5))
	expect(t, "and after", read(t, s, kubelet()), "8: a/x@5")
}

// TestCustomResource: JSON objects are kept as they came.
func TestCustomResource(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	shape := Shape{Component: "operator", Resource: widgets, Form: JSON}
	o := item(t, "a/w", 3, "x")
	list(t, s, shape, widgetKind, 4, o)
	s = again(t, s)
	defer s.Close()
	a := s.Get("operator", widgets, JSON, Key{"a", "w"})
	if a.Knowledge != Known || string(a.Object.Raw) != string(o.Raw) || a.Kind != widgetKind {
		t.Errorf("%+v", a)
	}
	expect(t, "absent", get(s, widgets, JSON, "b/none"), "absent")
}

// TestAge: what is watched is as old as the cloud's last sign; what is not, as old as its list.
func TestAge(t *testing.T) {
	clock := fakeClock()
	s := open(t, Config{Dir: t.TempDir(), Clock: clock})
	began := clock.Now()
	list(t, s, kubelet(), podKind, 10, pod(t, "a/x", 5))
	w := watch(t, s, kubelet(), podKind, 10)
	clock.Step(time.Hour)
	s.Fresh(clock.Now())
	age := func(s *Store) time.Duration {
		c, ok := s.Read(kubelet())
		if !ok {
			t.Fatal("unknown")
		}
		return c.AsOf.Sub(began)
	}
	if d := age(s); d != time.Hour {
		t.Errorf("watched: %v", d)
	}
	s.step(true)
	s.Close() // with the watch open, as if the process had been killed
	s = open(t, s.Config)
	defer s.Close()
	if d := age(s); d != time.Hour {
		t.Errorf("after a restart: %v", d)
	}
	_ = w
}

func newKey(t testing.TB, fill string) *disk.Key {
	t.Helper()
	k, err := disk.NewKey([]byte(strings.Repeat(fill, disk.Size)))
	check(t, err)
	return k
}

// TestSeal: no object is on the disk in the clear, and only with the key can they be read. Without it, or with another,
// they stay.
func TestSeal(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir, Key: newKey(t, "k")})
	shape := Shape{Component: "kubelet", Resource: secrets, Form: JSON}
	other := Shape{Component: "operator", Resource: widgets, Form: JSON}
	list(t, s, shape, secretKind, 5, item(t, "a/s", 5, "very-secret-value"))
	list(t, s, other, widgetKind, 5, item(t, "a/w", 5, "other-value"))
	w := watch(t, s, shape, secretKind, 5, event(wire.Modified, item(t, "a/s", 6, "very-secret-value")))
	w.Close()
	putStatus(t, s)
	s.Close()
	for _, clear := range []string{"very-secret-value", "other-value", `{"a":1}`} {
		expect(t, clear, strings.Join(holding(t, dir, clear), " "), "")
	}
	for _, key := range []*disk.Key{nil, newKey(t, "x")} {
		c := s.Config
		c.Key = key
		wrong := open(t, c)
		expect(t, "without the key", get(wrong, secrets, JSON, "a/s"), "unknown")
		expect(t, "its list", read(t, wrong, shape), "unknown")
		wrong.scrub(t.Context())
		wrong.step(true)
		wrong.Close()
	}
	s = open(t, s.Config)
	expect(t, "with the key", get(s, secrets, JSON, "a/s"), "@6")
	expect(t, "its list, with the key", read(t, s, shape), "6: a/s@6")
	expect(t, "another, with the key", read(t, s, other), "5: a/w@5")
	s.Close()
	c := s.Config
	c.Key = newKey(t, "n")
	s = open(t, c)
	defer s.Close()
	list(t, s, shape, secretKind, 6, item(t, "a/s", 6, "very-secret-value"))
	expect(t, "fetched again for a new key", read(t, s, shape), "6: a/s@6")
}

// holding are the files below a folder in which some bytes stand.
func holding(t testing.TB, dir, what string) (files []string) {
	t.Helper()
	check(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), what) {
			files = append(files, info.Name())
		}
		return err
	}))
	return files
}

// TestKeyAppears: what was written in the clear before there was a key is not on the disk any more, neither in free
// pages nor in the queue, and is served.
func TestKeyAppears(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	shape := Shape{Component: "kubelet", Resource: secrets, Form: JSON}
	for v := range uint64(5) {
		list(t, s, shape, secretKind, 5+v, item(t, "a/s", 5+v, strings.Repeat("very-secret-value", 300)))
		s.step(true)
	}
	check(t, s.Queue().Put(queue.Write{
		Target: queue.Target{Kind: queue.NodeStatus, Name: "n"}, Ours: []byte(`{"a":"very-secret-value"}`),
	}))
	s.Close()
	if got := holding(t, dir, "very-secret-value"); len(got) != 2 {
		t.Fatalf("in the clear without a key: %v", got)
	}
	c := s.Config
	c.Key = newKey(t, "k")
	s = open(t, c)
	defer s.Close()
	expect(t, "in the clear with a key", strings.Join(holding(t, dir, "very-secret-value"), " "), "")
	expect(t, "the list", read(t, s, shape), "9: a/s@9")
	if e, ok := s.Queue().Lookup(queue.Target{Kind: queue.NodeStatus, Name: "n"}); !ok ||
		string(e.Ours) != `{"a":"very-secret-value"}` {
		t.Errorf("what waits for the cloud: %+v", e)
	}
}

// TestFolder: it is its owner's alone, and one process's.
func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := open(t, Config{Dir: dir})
	defer s.Close()
	check(t, s.Queue().Put(queue.Write{Target: queue.Target{Kind: queue.NodeStatus, Name: "n"}, Ours: []byte("{}")}))
	check(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	}))
	var used *disk.InUseError
	if _, err := Open(Config{Dir: dir}); !errors.As(err, &used) {
		t.Errorf("opened twice: %v", err)
	}
}

// TestDocuments: discovery and the like are kept.
func TestDocuments(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	d := Document{ContentType: "application/json", ETag: "e", Body: []byte("{}"), At: time.Unix(5, 0)}
	check(t, s.PutDocument("/version", d))
	s = again(t, s)
	defer s.Close()
	if got, ok := s.Document("/version"); !ok || got.ETag != "e" || string(got.Body) != "{}" || !got.At.Equal(d.At) {
		t.Errorf("%+v", got)
	}
	if _, ok := s.Document("/none"); ok {
		t.Error("a document from nowhere")
	}
}

// TestWrittenAfter404: who was told that an object does not exist, and creates it, is not told so again; also after a
// restart and a sweep.
func TestWrittenAfter404(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	r, k := Resource{Group: "storage.k8s.io", Version: "v1", Name: "csinodes"}, Key{Name: "edge-1"}
	check(t, s.NotFound("kubelet", r, Protobuf, k))
	expect(t, "after 404", get(s, r, Protobuf, "/edge-1"), "absent")
	s.Written(r, Protobuf, wire.Kind{APIVersion: "storage.k8s.io/v1", Kind: "CSINode"}, pod(t, "/edge-1", 7))
	s.Written(r, Protobuf, wire.Kind{APIVersion: "storage.k8s.io/v1", Kind: "CSINode"}, pod(t, "/edge-2", 8))
	known := get(s, r, Protobuf, "/edge-1")
	if !strings.Contains(known, "7") {
		t.Errorf("after its creation: %s", known)
	}
	expect(t, "what nobody asked for", get(s, r, Protobuf, "/edge-2"), "unknown")
	s = again(t, s)
	s.mu.Lock()
	s.sweepObjects()
	s.mu.Unlock()
	expect(t, "after a restart and a sweep", get(s, r, Protobuf, "/edge-1"), known)
	check(t, s.NotFound("kubelet", r, Protobuf, k))
	expect(t, "deleted", get(s, r, Protobuf, "/edge-1"), "absent")
}

// TestWrittenSoon: what a client of the node wrote is not left for as long as what merely changed.
func TestWrittenSoon(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	defer s.Close()
	all := Shape{Component: "kubelet", Resource: pods, Namespace: "default"}
	list(t, s, all, podKind, 5, pod(t, "default/a", 4))
	check(t, s.flush())
	now := s.Clock.Now()
	w := watch(t, s, all, podKind, 5, event("MODIFIED", pod(t, "default/a", 6)))
	defer w.Close()
	if s.due(now, false) {
		t.Error("what merely changed is written at once")
	}
	s.Written(pods, Protobuf, podKind, pod(t, "elsewhere/b", 7))
	if s.due(now, false) {
		t.Error("what nobody reads is written")
	}
	s.Written(pods, Protobuf, podKind, pod(t, "default/a", 8))
	if !s.due(now, false) {
		t.Error("what the node wrote waits")
	}
}
