package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

func TestNotSyncedIs503NeverAnEmptyList(t *testing.T) {
	srv := serve(t, newRelay(t))
	for _, path := range []string{
		slicesPath, slicesPath + "?watch=1", slicesPath + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
		"/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/b",
	} {
		resp, body := get(t, srv, path, "")
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d, Retry-After %q: %s", path, resp.StatusCode, resp.Header.Get("Retry-After"), body)
		}
	}
}

func TestAheadOfTheCache(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	r := newRelay(t, withClock(clock))
	replace(t, r, 10, slice(t, "a/x", 5))
	srv := serve(t, r)
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp, body := get(t, srv, slicesPath+"?resourceVersion=20&resourceVersionMatch=NotOlderThan", "")
		var s metav1.Status
		if err := json.Unmarshal(body, &s); err != nil {
			t.Error(err)
		}
		if resp.StatusCode != http.StatusGatewayTimeout ||
			s.Details.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%d %+v", resp.StatusCode, s)
		}
	}()
	eventually(t, "the list to wait", clock.HasWaiters)
	clock.Step(3 * time.Second)
	<-done

	w := watch(t, srv, "resourceVersion=20") // a plain watch is accepted and shows only what is later
	eventually(t, "the watch", func() bool { return r.Status().Watchers == 1 })
	for v := uint64(15); v <= 21; v++ {
		apply(t, r, wire.Modified, slice(t, "a/x", v))
	}
	w.want("MODIFIED a/x 21")
}

func TestListWaitsForItsVersion(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10)
	srv := serve(t, r)
	got := make(chan string, 1)
	go func() {
		resp, body := get(t, srv, slicesPath+"?resourceVersion=11&resourceVersionMatch=Exact", "")
		got <- fmt.Sprint(resp.StatusCode, strings.Contains(string(body), `"resourceVersion":"11"`))
	}()
	apply(t, r, wire.Added, slice(t, "a/x", 11))
	if s := <-got; s != "200 true" {
		t.Error(s)
	}
}

func TestWatchersShareOneFrame(t *testing.T) {
	r := newRelay(t, func(c *relay.Config) { c.Gather = -1 })
	replace(t, r, 10)
	h := &Handler{Source: r}
	frame := func(o output) []byte {
		t.Helper()
		cur, err := r.Watch(t.Context(), relay.WatchOptions{At: relay.At{Version: 10}})
		if err != nil {
			t.Fatal(err)
		}
		events, _, err := cur.Read(nil)
		if err != nil || len(events) != 1 {
			t.Fatal(events, err)
		}
		f, err := h.encoder(o).frame(&events[0])
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	o := slice(t, "a/x", 11)
	apply(t, r, wire.Added, o)
	f1, f2 := frame(output{media: mediaProtobuf}), frame(output{media: mediaProtobuf})
	j1, j2 := frame(output{media: mediaJSON}), frame(output{media: mediaJSON})
	if &f1[0] != &f2[0] || &j1[0] != &j2[0] {
		t.Error("each watcher got a frame of its own")
	}
	if !bytes.Equal(f1, wire.AppendProtobufFrame(nil, wire.Added, r.Resource().WireKind(), o.Raw)) {
		t.Error("the frame is not the one that came")
	}
}

func TestSlowWatcherIsClosedAndBlocksNobody(t *testing.T) {
	r := newRelay(t, func(c *relay.Config) { c.RingBytes, c.Gather = 256<<10, -1 })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() { cancel(); <-done }()
	replace(t, r, 10)
	srv := serve(t, r)
	slow, fast := watch(t, srv, "resourceVersion=10"), watch(t, srv, "resourceVersion=10")
	eventually(t, "both watches", func() bool { return r.Status().Watchers == 2 })
	big := strings.Repeat("x", 10<<10)
	version := uint64(10)
	for r.Status().Watchers == 2 { // the slow one reads nothing
		if version++; version > 50000 {
			t.Fatal("the slow watcher is still there")
		}
		apply(t, r, wire.Modified, object(t, &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: "a", Name: "x", ResourceVersion: wire.FormatVersion(version), Annotations: map[string]string{"big": big},
		}}))
		want := "MODIFIED a/x %d"
		if version == 11 {
			want = "ADDED a/x %d"
		}
		fast.want(fmt.Sprintf(want, version))
		if s := r.Status(); s.RingBytes > 256<<10 {
			t.Fatalf("the ring grew to %d bytes", s.RingBytes)
		}
	}
	_ = slow
}

func TestFieldsNewerThanOurTypesAreNotLost(t *testing.T) {
	fallback := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from the cloud") })
	r := newRelay(t)
	raw := protowire.AppendString(protowire.AppendTag(slice(t, "a/x", 5).Raw, 999, protowire.BytesType), "new")
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, r, 10, o)
	if r.Status().NewerField != "999" {
		t.Errorf("newer field %q", r.Status().NewerField)
	}
	srv := serve(t, r, behind(fallback))
	if _, body := get(t, srv, slicesPath, mediaJSON); string(body) != "from the cloud" {
		t.Errorf("JSON: %s", body)
	}
	if _, body := get(t, srv, slicesPath, mediaProtobuf); !bytes.Contains(body, raw) {
		t.Error("protobuf: the field is gone")
	}
}

func TestCustomResources(t *testing.T) {
	res, err := relay.ParseResource("widgets.v1.example.com=Widget")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, func(c *relay.Config) { c.Resource = res })
	raw := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a","uid":"u",` +
		`"resourceVersion":"5","labels":{"k":"v"}},"spec":{"x":1}}`
	o, err := wire.ParseObject(wire.JSON, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, r, 10, o)
	srv := serve(t, r)
	_, body := get(t, srv, "/apis/example.com/v1/widgets?labelSelector=k%3Dv", "")
	want := `{"apiVersion":"example.com/v1","items":[` + raw +
		`],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"10"}}` + "\n"
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if resp, _ := get(t, srv, "/apis/example.com/v1/widgets", mediaProtobuf); resp.StatusCode != http.StatusNotAcceptable {
		t.Errorf("protobuf of a custom resource: %d", resp.StatusCode)
	}
	_, body = get(t, srv, "/apis/example.com/v1/namespaces/a/widgets/w",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	if !strings.HasPrefix(string(body),
		`{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"w"`) {
		t.Errorf("metadata: %s", body)
	}
}

func TestOrderIsByKey(t *testing.T) {
	keys := []string{"a/z", "a-b/y", "a/a", "b/x", "a-b/x"}
	r := newRelay(t)
	var items []*wire.Object
	for i, k := range keys {
		items = append(items, slice(t, k, uint64(i+1)))
	}
	replace(t, r, 10, items...)
	sort.Strings(keys) // '-' sorts before '/'
	var got []string
	_, err := wire.ReadList(bytes.NewReader(listBody(t, r)), wire.Protobuf, r.Resource().WireKind(),
		func(o *wire.Object) error {
			got = append(got, o.Key)
			return nil
		})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(keys) {
		t.Errorf("%v, %v, want %v", got, err, keys)
	}
}

func listBody(t *testing.T, r *relay.Relay) []byte {
	t.Helper()
	_, body := get(t, serve(t, r), slicesPath, mediaProtobuf)
	return body
}
