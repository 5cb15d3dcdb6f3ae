package relay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sliceResource(t *testing.T) Resource {
	t.Helper()
	res, err := ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// slice makes an object; every label is a pair.
func slice(t *testing.T, key string, version uint64, pairs ...string) *wire.Object {
	t.Helper()
	ns, name, _ := bytes.Cut([]byte(key), []byte("/"))
	s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: string(ns), Name: string(name), UID: types.UID("uid-" + key), ResourceVersion: wire.FormatVersion(version),
	}}
	for i := 0; i < len(pairs); i += 2 {
		metav1.SetMetaDataLabel(&s.ObjectMeta, pairs[i], pairs[i+1])
	}
	return object(t, s)
}

func object(t *testing.T, s *discoveryv1.EndpointSlice) *wire.Object {
	t.Helper()
	raw, err := s.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func newRelay(t *testing.T, change ...func(*Config)) *Relay {
	t.Helper()
	c := Config{Resource: sliceResource(t)}
	for _, f := range change {
		f(&c)
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// withClock sets a clock; nothing is held back, so that tests need no steps to see changes.
func withClock(c clock.WithTickerAndDelayedExecution) func(*Config) {
	return func(cfg *Config) { cfg.Clock, cfg.Gather = c, -1 }
}

func replace(t *testing.T, r *Relay, version uint64, items ...*wire.Object) {
	t.Helper()
	if err := r.Replace(version, items); err != nil {
		t.Fatal(err)
	}
}

// apply takes an event as a feeder would: through its frame.
func apply(t *testing.T, r *Relay, typ string, o *wire.Object) {
	t.Helper()
	ev := &wire.Event{Type: typ, Object: o, Version: o.Version}
	ev.Frame = wire.AppendProtobufFrame(nil, typ, r.cfg.Resource.WireKind(), o.Raw)
	if err := r.Apply(ev); err != nil {
		t.Fatal(err)
	}
}

func bookmark(t *testing.T, r *Relay, version uint64) {
	t.Helper()
	if err := r.Apply(&wire.Event{Type: wire.Bookmark, Version: version}); err != nil {
		t.Fatal(err)
	}
}

// patience is for how long tests wait for what should come at once.
const patience = 30 * time.Second

// testWatch is an open watch of a test client.
type testWatch struct {
	t      *testing.T
	events events
	close  func()
}

// events are what a watch has given. They end when the watch does.
type events chan *wire.Event

func (e events) Next() (*wire.Event, error) {
	if ev := <-e; ev != nil {
		return ev, nil
	}
	return nil, io.EOF
}

func watch(t *testing.T, r *Relay, query string) *testWatch {
	t.Helper()
	return openWatch(t, r, query, false)
}

// watchProgress sees every bookmark behind the testimony that the watch begins with.
func watchProgress(t *testing.T, r *Relay, query string) *testWatch {
	t.Helper()
	w := openWatch(t, r, query, true)
	if ev, err := w.events.Next(); err != nil || ev.Testimony == "" {
		t.Fatalf("the watch begins with %+v, %v", ev, err)
	}
	return w
}

// openWatch begins a watch with the options that a query names.
func openWatch(t *testing.T, r *Relay, query string, progress bool) *testWatch {
	t.Helper()
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	o := WatchOptions{
		Initial: q.Get("sendInitialEvents") == "true", Bookmarks: q.Get("allowWatchBookmarks") == "true", Progress: progress,
	}
	o.Wait = o.Initial
	if o.Version, err = wire.ParseVersion(q.Get("resourceVersion")); err != nil {
		t.Fatal(err)
	}
	seconds, _ := strconv.Atoi(q.Get("timeoutSeconds"))
	o.Timeout = time.Duration(seconds) * time.Second
	l, errLabels := labels.Parse(q.Get("labelSelector"))
	f, errFields := fields.ParseSelector(q.Get("fieldSelector"))
	if o.Selector, err = r.Select("", l, f); errors.Join(err, errLabels, errFields) != nil {
		t.Fatal(err, errLabels, errFields)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w, done := &testWatch{t: t, events: make(events)}, make(chan struct{})
	w.close = func() { cancel(); <-done }
	t.Cleanup(w.close)
	cur, err := r.Watch(ctx, o)
	go func() {
		defer close(done)
		defer close(w.events)
		w.pump(ctx, r, cur, err)
	}()
	return w
}

// pump gives what a cursor does until it ends, or ctx. It counts as a watcher from when it has seen all that there was.
func (w *testWatch) pump(ctx context.Context, r *Relay, cur *Cursor, err error) {
	give := func(ev *wire.Event) {
		select {
		case w.events <- ev:
		case <-ctx.Done():
		}
	}
	next := r.cfg.Clock.NewTimer(time.Hour)
	defer func() { next.Stop() }()
	watching := false
	for err == nil && ctx.Err() == nil {
		var events []Event
		var wait Wait
		events, wait, err = cur.Read(nil)
		for i := range events {
			give(&events[i].Event)
		}
		if err != nil || len(events) > 0 {
			continue
		}
		if !watching {
			watching = true
			defer r.Stream("test", func() {}).Close()
		}
		next.Stop()
		next = r.cfg.Clock.NewTimer(wait.Until.Sub(r.cfg.Clock.Now())) // a fake one that has fired unseen cannot be set again
		if !r.cfg.Clock.Now().Before(wait.Until) {                     // a fake clock may have been set meanwhile
			continue
		}
		select {
		case <-wait.Changed:
		case <-next.C():
		case <-ctx.Done():
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		status := StatusOf(err)
		give(&wire.Event{Type: wire.Error, Status: &status})
	}
}

// listAt is what a list at exactly a version gives.
func listAt(t *testing.T, r *Relay, version uint64) (*Page, error) {
	t.Helper()
	return r.Read(t.Context(), PageOptions{At: At{Version: version}, Exact: true})
}

// next returns "TYPE key version" of the next event, "EOF" at the end.
func (w *testWatch) next() string {
	w.t.Helper()
	late := time.AfterFunc(patience, w.close)
	ev, err := w.events.Next()
	if !late.Stop() {
		w.t.Fatalf("waited %v in vain for the next event of a watch", patience)
	}
	switch {
	case errors.Is(err, io.EOF):
		return "EOF"
	case err != nil:
		w.t.Fatal(err)
	case ev.Type == wire.Error:
		return fmt.Sprintf("ERROR %d", ev.Status.Code)
	case ev.Object == nil && ev.InitialEnd:
		return fmt.Sprintf("END %d", ev.Version)
	case ev.Object == nil:
		return fmt.Sprintf("BOOKMARK %d", ev.Version)
	}
	return fmt.Sprintf("%s %s %d", ev.Type, ev.Object.Key, ev.Version)
}

func (w *testWatch) want(events ...string) {
	w.t.Helper()
	for i, want := range events {
		if got := w.next(); got != want {
			w.t.Fatalf("event %d: got %q, want %q", i, got, want)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testkit.Until(t, patience, what, ok)
}
