package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"go.uber.org/goleak"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const slicesPath = "/apis/discovery.k8s.io/v1/endpointslices"

func sliceResource(t *testing.T) relay.Resource {
	t.Helper()
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
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

// behind sets who answers what the relay cannot.
func behind(who http.Handler) func(*Handler) {
	return func(h *Handler) { h.Fallback = who }
}

func newRelay(t *testing.T, change ...func(*relay.Config)) *relay.Relay {
	t.Helper()
	c := relay.Config{Resource: sliceResource(t)}
	for _, f := range change {
		f(&c)
	}
	r, err := relay.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// withClock sets a clock; nothing is held back, so that tests need no steps to see changes.
func withClock(c clock.WithTickerAndDelayedExecution) func(*relay.Config) {
	return func(cfg *relay.Config) { cfg.Clock, cfg.Gather = c, -1 }
}

func replace(t *testing.T, r *relay.Relay, version uint64, items ...*wire.Object) {
	t.Helper()
	if err := r.Replace(version, items); err != nil {
		t.Fatal(err)
	}
}

// apply takes an event as a feeder would: through its frame.
func apply(t *testing.T, r *relay.Relay, typ string, o *wire.Object) {
	t.Helper()
	ev := &wire.Event{Type: typ, Object: o, Version: o.Version}
	ev.Frame = wire.AppendProtobufFrame(nil, typ, r.Resource().WireKind(), o.Raw)
	if err := r.Apply(ev); err != nil {
		t.Fatal(err)
	}
}

// serve starts a real server for a relay.
func serve(t *testing.T, r *relay.Relay, change ...func(*Handler)) *httptest.Server {
	t.Helper()
	h := &Handler{Source: r}
	for _, f := range change {
		f(h)
	}
	srv := httptest.NewUnstartedServer(h)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// patience is for how long tests wait for what should come at once.
const patience = 30 * time.Second

// testWatch is an open watch of a test client.
type testWatch struct {
	t      *testing.T
	events *wire.EventReader
	close  func()
}

func watch(t *testing.T, srv *httptest.Server, query string) *testWatch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+slicesPath+"?watch=1&"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", mediaProtobuf)
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("watch: status %d", resp.StatusCode)
	}
	w := &testWatch{
		t: t, events: wire.NewEventReader(resp.Body, wire.Protobuf, sliceResource(t).WireKind()),
		close: func() { cancel(); resp.Body.Close() },
	}
	t.Cleanup(w.close)
	return w
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

func get(t *testing.T, srv *httptest.Server, path, accept string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testkit.Until(t, patience, what, ok)
}
