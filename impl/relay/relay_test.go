package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sort"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weir-edge/weir/impl/relay/wire"
)

func TestNotSyncedIs503NeverAnEmptyList(t *testing.T) {
	srv := serve(t, newRelay(t))
	for _, path := range []string{slicesPath, slicesPath + "?watch=1", slicesPath + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/b"} {
		resp, body := get(t, srv, path, "")
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d, Retry-After %q: %s", path, resp.StatusCode, resp.Header.Get("Retry-After"), body)
		}
	}
}

func TestNeverGoesBack(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/x", 5))
	apply(t, r, wire.Modified, slice(t, "a/x", 12))
	apply(t, r, wire.Modified, slice(t, "a/x", 11)) // dropped
	apply(t, r, wire.Modified, slice(t, "a/x", 12)) // dropped
	if s := r.Status(); s.Version != 12 || s.RingEvents != 1 {
		t.Errorf("version %d, %d events", s.Version, s.RingEvents)
	}
	if err := r.Replace(11, nil); !errors.Is(err, ErrOlder) {
		t.Errorf("an older list: %v", err)
	}
	if err := newRelay(t).Apply(&wire.Event{Type: wire.Bookmark, Version: 3}); !errors.Is(err, ErrNotSynced) {
		t.Errorf("an event before the first list: %v", err)
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
		if resp.StatusCode != http.StatusGatewayTimeout || s.Details.Causes[0].Type != metav1.CauseTypeResourceVersionTooLarge || resp.Header.Get("Retry-After") != "1" {
			t.Errorf("%d %+v", resp.StatusCode, s)
		}
	}()
	eventually(t, "the list to wait", clock.HasWaiters)
	clock.Step(waitAhead)
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

func TestSelectorChanges(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/in", 5, "tier", "front"), slice(t, "a/out", 6))
	srv := serve(t, r)
	w := watch(t, srv, "resourceVersion=10&labelSelector=tier%3Dfront")
	apply(t, r, wire.Modified, slice(t, "a/out", 11, "tier", "front"))
	apply(t, r, wire.Modified, slice(t, "a/out", 12, "tier", "front", "x", "y"))
	apply(t, r, wire.Modified, slice(t, "a/in", 13, "tier", "back"))
	apply(t, r, wire.Modified, slice(t, "a/in", 14, "tier", "back", "x", "y"))
	apply(t, r, wire.Deleted, slice(t, "a/in", 15))
	apply(t, r, wire.Deleted, slice(t, "a/out", 16, "tier", "front"))
	w.want("ADDED a/out 11", "MODIFIED a/out 12")
	ev, err := w.events.Next()
	if err != nil {
		t.Fatal(err)
	}
	// it leaves with its previous content and the new version
	if ev.Type != wire.Deleted || ev.Version != 13 || ev.Object.Labels.Get("tier") != "front" {
		t.Errorf("%s at %d with labels %v", ev.Type, ev.Version, ev.Object.Labels)
	}
	w.want("DELETED a/out 16")
}

func TestTooOldIs410(t *testing.T) {
	r := newRelay(t, func(c *Config) { c.RingBytes = 64 << 10 })
	replace(t, r, 10, slice(t, "a/x", 5))
	srv := serve(t, r)
	watch(t, srv, "resourceVersion=9").want("ERROR 410", "EOF")
	for v := uint64(11); v < 1000; v++ {
		apply(t, r, wire.Modified, slice(t, "a/x", v))
	}
	s := r.Status()
	if s.RingBytes > 64<<10 || s.Oldest <= 11 {
		t.Fatalf("ring of %d bytes from %d", s.RingBytes, s.Oldest)
	}
	watch(t, srv, "resourceVersion=11").want("ERROR 410", "EOF")
	watch(t, srv, fmt.Sprint("resourceVersion=", s.Oldest)).want(fmt.Sprintf("MODIFIED a/x %d", s.Oldest+1))
	if resp, _ := get(t, srv, slicesPath+"?resourceVersion=11&resourceVersionMatch=Exact", ""); resp.StatusCode != http.StatusGone {
		t.Errorf("exact list at 11: %d", resp.StatusCode)
	}
}

func TestRingAges(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	r := newRelay(t, withClock(clock), func(c *Config) { c.RingAge = time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() { cancel(); <-done }()
	replace(t, r, 10)
	apply(t, r, wire.Added, slice(t, "a/x", 11))
	eventually(t, "the janitor", clock.HasWaiters)
	clock.Step(2 * time.Minute)
	eventually(t, "an empty ring", func() bool { return r.Status().RingEvents == 0 })
	if r.Resumable(10) || !r.Resumable(11) {
		t.Error("resumable at 10, or not at 11")
	}
}

func TestReplaceIsOneBatch(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/gone", 4), slice(t, "a/same", 5), slice(t, "a/changed", 6))
	srv := serve(t, r)
	w := watch(t, srv, "resourceVersion=10&allowWatchBookmarks=true")
	replace(t, r, 20, slice(t, "a/same", 5), slice(t, "a/new", 18), slice(t, "a/changed", 15))
	batch := []string{"DELETED a/gone 10", "MODIFIED a/changed 15", "ADDED a/new 18", "BOOKMARK 20"}
	w.want(batch...)
	watch(t, srv, "resourceVersion=10&allowWatchBookmarks=true").want(batch...) // from its start: all of it again
	watch(t, srv, "resourceVersion=15").want("ERROR 410", "EOF")                // inside: never
	if r.Resumable(15) {
		t.Error("resumable inside the batch")
	}
	w = watch(t, srv, "resourceVersion=20")
	apply(t, r, wire.Added, slice(t, "a/z", 21))
	w.want("ADDED a/z 21")
	if resp, _ := get(t, srv, slicesPath+"?resourceVersion=15&resourceVersionMatch=Exact", ""); resp.StatusCode != http.StatusGone {
		t.Errorf("exact list inside a batch: %d", resp.StatusCode)
	}
}

func TestContradictingListEndsTheHistory(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10, slice(t, "a/x", 5))
	srv := serve(t, r)
	w := watch(t, srv, "resourceVersion=10")
	eventually(t, "the watch", func() bool { return r.Status().Watchers == 1 })
	replace(t, r, 20, slice(t, "a/x", 7)) // changed at 7, though we had seen up to 10
	w.want("ERROR 410", "EOF")
	if r.Resumable(10) || !r.Resumable(20) {
		t.Error("resumable at 10, or not at 20")
	}
}

// A client that applies any prefix of what it is sent, breaks, and resumes, must end with the relay's state.
func TestResumeAfterAnyPrefix(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for round := range 60 {
		r := newRelay(t)
		state := map[string]uint64{}
		version := uint64(10)
		replace(t, r, version)
		srv := serve(t, r)
		client := map[string]uint64{}
		seen, w := version, watch(t, srv, "resourceVersion=10&allowWatchBookmarks=true")
		for range 30 {
			key := fmt.Sprintf("a/%d", rnd.IntN(6))
			version++
			switch _, have := state[key]; {
			case rnd.IntN(6) == 0: // a list after a gap
				var items []*wire.Object
				for k := range state {
					if rnd.IntN(3) == 0 {
						delete(state, k)
					}
				}
				version += 10
				state[key] = version - 5
				for k, v := range state {
					items = append(items, slice(t, k, v))
				}
				replace(t, r, version, items...)
			case have && rnd.IntN(3) == 0:
				delete(state, key)
				apply(t, r, wire.Deleted, slice(t, key, version))
			default:
				typ := wire.Added
				if have {
					typ = wire.Modified
				}
				state[key] = version
				apply(t, r, typ, slice(t, key, version))
			}
			for range rnd.IntN(3) { // read a little, break perhaps
				if seen >= version {
					break
				}
				ev, err := w.events.Next()
				if err != nil {
					t.Fatalf("seed %d round %d: %v", seed, round, err)
				}
				follow(client, ev, &seen)
			}
			if rnd.IntN(3) == 0 {
				w.close()
				if !r.Resumable(seen) { // inside a batch: list and watch, as a reflector does
					clear(client)
					for k, v := range state {
						client[k] = v
					}
					seen = version
				}
				w = watch(t, srv, fmt.Sprintf("resourceVersion=%d&allowWatchBookmarks=true", seen))
			}
		}
		bookmark(t, r, version+1)
		w.close()
		if !r.Resumable(seen) {
			continue
		}
		w = watch(t, srv, fmt.Sprintf("resourceVersion=%d&allowWatchBookmarks=true&timeoutSeconds=1", seen))
		for {
			ev, err := w.events.Next()
			if err != nil {
				break
			}
			follow(client, ev, &seen)
			if seen >= version {
				break
			}
		}
		if fmt.Sprint(client) != fmt.Sprint(state) {
			t.Fatalf("seed %d round %d: client has %v, relay %v", seed, round, client, state)
		}
		w.close()
		srv.Close()
	}
}

func follow(client map[string]uint64, ev *wire.Event, seen *uint64) {
	switch ev.Type {
	case wire.Added, wire.Modified:
		client[ev.Object.Key] = ev.Version
	case wire.Deleted:
		delete(client, ev.Object.Key)
	}
	*seen = ev.Version
}

func TestWatchersShareOneFrame(t *testing.T) {
	r := newRelay(t)
	replace(t, r, 10)
	o := slice(t, "a/x", 11)
	apply(t, r, wire.Added, o)
	ev := r.ring.events[0]
	proto, jsonA, jsonB := r.encoder(output{media: mediaProtobuf}), r.encoder(output{media: mediaJSON}), r.encoder(output{media: mediaJSON})
	f1, err1 := proto.frame(ev, wire.Added, o)
	f2, err2 := r.encoder(output{media: mediaProtobuf}).frame(ev, wire.Added, o)
	j1, err3 := jsonA.frame(ev, wire.Added, o)
	j2, err4 := jsonB.frame(ev, wire.Added, o)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	if &f1[0] != &f2[0] || &j1[0] != &j2[0] {
		t.Error("each watcher got a frame of its own")
	}
	if !bytes.Equal(f1, wire.AppendProtobufFrame(nil, wire.Added, r.kind, o.Raw)) {
		t.Error("the frame is not the one that came")
	}
}

func TestSlowWatcherIsClosedAndBlocksNobody(t *testing.T) {
	r := newRelay(t, func(c *Config) { c.RingBytes, c.Gather = 256<<10, -1 })
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

func TestTimeoutAndBookmarks(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	r := newRelay(t, withClock(clock))
	replace(t, r, 10, slice(t, "a/x", 5))
	srv := serve(t, r)
	w := watch(t, srv, "resourceVersion=10&allowWatchBookmarks=true&timeoutSeconds=100")
	eventually(t, "the watch to sleep", func() bool { return r.Status().Watchers == 1 && clock.HasWaiters() })
	bookmark(t, r, 33)
	eventually(t, "the watch to sleep", clock.HasWaiters)
	clock.Step(61 * time.Second)
	w.want("BOOKMARK 33")
	eventually(t, "the watch to sleep", clock.HasWaiters)
	clock.Step(37 * time.Second)
	w.want("BOOKMARK 33") // two seconds before its end
	eventually(t, "the watch to sleep", clock.HasWaiters)
	clock.Step(2 * time.Second)
	w.want("EOF")
}

func TestFieldsNewerThanOurTypesAreNotLost(t *testing.T) {
	fallback := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from the cloud") })
	r := newRelay(t, func(c *Config) { c.Fallback = fallback })
	raw := protowire.AppendString(protowire.AppendTag(slice(t, "a/x", 5).Raw, 999, protowire.BytesType), "new")
	o, err := wire.ParseObject(wire.Protobuf, raw)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, r, 10, o)
	if r.Status().NewerField != "999" {
		t.Errorf("newer field %q", r.Status().NewerField)
	}
	srv := serve(t, r)
	if _, body := get(t, srv, slicesPath, mediaJSON); string(body) != "from the cloud" {
		t.Errorf("JSON: %s", body)
	}
	if _, body := get(t, srv, slicesPath, mediaProtobuf); !bytes.Contains(body, raw) {
		t.Error("protobuf: the field is gone")
	}
}

func TestCustomResources(t *testing.T) {
	res, err := ParseResource("widgets.v1.example.com=Widget")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, func(c *Config) { c.Resource = res })
	raw := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a","uid":"u","resourceVersion":"5","labels":{"k":"v"}},"spec":{"x":1}}`
	o, err := wire.ParseObject(wire.JSON, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, r, 10, o)
	srv := serve(t, r)
	_, body := get(t, srv, "/apis/example.com/v1/widgets?labelSelector=k%3Dv", "")
	want := `{"apiVersion":"example.com/v1","items":[` + raw + `],"kind":"WidgetList","metadata":{"continue":"","resourceVersion":"10"}}` + "\n"
	if string(body) != want {
		t.Errorf("got  %s\nwant %s", body, want)
	}
	if resp, _ := get(t, srv, "/apis/example.com/v1/widgets", mediaProtobuf); resp.StatusCode != http.StatusNotAcceptable {
		t.Errorf("protobuf of a custom resource: %d", resp.StatusCode)
	}
	_, body = get(t, srv, "/apis/example.com/v1/namespaces/a/widgets/w", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	if !strings.HasPrefix(string(body), `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"w"`) {
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
	_, err := wire.ReadList(bytes.NewReader(listBody(t, r)), wire.Protobuf, r.kind, func(o *wire.Object) error {
		got = append(got, o.Key)
		return nil
	})
	if err != nil || fmt.Sprint(got) != fmt.Sprint(keys) {
		t.Errorf("%v, %v, want %v", got, err, keys)
	}
}

func listBody(t *testing.T, r *Relay) []byte {
	t.Helper()
	_, body := get(t, serve(t, r), slicesPath, mediaProtobuf)
	return body
}

func TestParseResource(t *testing.T) {
	for in, want := range map[string]string{
		"endpoints.v1.":                      "/api/v1 Endpoints protobuf",
		"endpoints.v1":                       "/api/v1 Endpoints protobuf",
		"endpointslices.v1.discovery.k8s.io": "/apis/discovery.k8s.io/v1 EndpointSlice protobuf",
		"widgets.v1.example.com=Widget":      "/apis/example.com/v1 Widget json",
	} {
		r, err := ParseResource(in)
		if got := fmt.Sprint(r.Path(), " ", r.Kind, " ", r.Encoding()); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", ".", "endpoints", "widgets.v1.example.com", "endpoints.v1.=Wrong", "x.v1=", "x.v1.=X"} {
		if _, err := ParseResource(in); err == nil {
			t.Errorf("%q was accepted", in)
		}
	}
}
