package gatetest

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/testkit"
)

const (
	slicesAt = "/apis/discovery.k8s.io/v1/endpointslices"
	slices   = "endpointslices.v1.discovery.k8s.io"
)

// TestGate runs everything on one control plane. The last part freezes it.
func TestGate(t *testing.T) {
	w := newWorld(t)
	for _, ns := range []string{"a", "b"} {
		_, err := w.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}},
			metav1.CreateOptions{})
		check(t, err)
		for i := range 3 {
			_, err := w.kube.DiscoveryV1().EndpointSlices(ns).Create(t.Context(), slice(ns, fmt.Sprint("s-", i)),
				metav1.CreateOptions{})
			check(t, err)
		}
	}
	for _, part := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"objects", testObjects}, {"differences", testDifferences}, {"strangers", testStrangers},
		{"namespaces", testNamespaces}, {"others", testOthers}, {"writes", testWrites}, {"own", testOwn},
		{"frozen", testFrozen},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, w) })
	}
}

// testObjects: a hub reads whole objects as kube-apiserver has them, and each change as it comes.
func testObjects(t *testing.T, w *world) {
	hub := w.hub().typed(t)
	all := w.kube.DiscoveryV1().EndpointSlices("")
	same := func(what string) *discoveryv1.EndpointSliceList {
		t.Helper()
		want, err := all.List(t.Context(), metav1.ListOptions{})
		check(t, err)
		var got *discoveryv1.EndpointSliceList
		testkit.Until(t, patience, what, func() bool {
			got, err = hub.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{
				ResourceVersion: want.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			})
			check(t, err)
			return reflect.DeepEqual(got.Items, want.Items)
		})
		return got
	}
	listed := same("the same list")
	if len(listed.Items) < 6 {
		t.Errorf("%d slices", len(listed.Items))
	}
	one, err := hub.DiscoveryV1().EndpointSlices("a").List(t.Context(),
		metav1.ListOptions{FieldSelector: "metadata.name=s-1"})
	if err != nil || len(one.Items) != 1 || one.Items[0].Namespace != "a" {
		t.Errorf("one of them: %v, %v", one, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watching, err := hub.DiscoveryV1().EndpointSlices("").Watch(ctx,
		metav1.ListOptions{ResourceVersion: listed.ResourceVersion})
	check(t, err)
	defer watching.Stop()
	next := func() watch.Event { return testkit.Value(t, patience, "an event", watching.ResultChan()) }
	wants := func(kind watch.EventType, want *discoveryv1.EndpointSlice) {
		t.Helper()
		got := next()
		s, ok := got.Object.(*discoveryv1.EndpointSlice)
		if got.Type != kind || !ok || s.Name != want.Name || kind != watch.Deleted && !reflect.DeepEqual(s, want) {
			t.Errorf("%s of %v, want %s of %v", got.Type, got.Object, kind, want)
		}
	}
	made, err := w.kube.DiscoveryV1().EndpointSlices("b").Create(t.Context(), slice("b", "new"), metav1.CreateOptions{})
	check(t, err)
	wants(watch.Added, made)
	wants(watch.Modified, w.change(t, "b", "new", "one"))
	wants(watch.Modified, w.change(t, "b", "new", "two"))
	check(t, w.kube.DiscoveryV1().EndpointSlices("b").Delete(t.Context(), "new", metav1.DeleteOptions{}))
	wants(watch.Deleted, made)
	same("the same list, after changes")
}

// testDifferences: a relay that asks for differences gets them, and holds the same bytes as one that kube-apiserver
// feeds.
func testDifferences(t *testing.T, w *world) {
	hub := w.hub()
	hub.header.Set("Accept", wire.DeltaMedia+";stream=watch, application/vnd.kubernetes.protobuf")
	raw := hub.watch(t, slicesAt+
		"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	if raw.code != http.StatusOK || !strings.HasPrefix(raw.kind, wire.DeltaMedia) {
		t.Fatalf("%d, %s", raw.code, raw.kind)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	feed := func(up *hop.Upstream) (*relay.Relay, *source.Feeder) {
		res, err := relay.ParseResource(slices)
		check(t, err)
		r, err := relay.New(relay.Config{Resource: res})
		check(t, err)
		f, err := source.NewFeeder(source.Config{Relay: r, Clock: clock.RealClock{}})
		check(t, err)
		f.Use(up)
		go func() { ended <- f.Run(ctx) }()
		return r, f
	}
	client, err := rest.HTTPClientFor(w.cloud.RESTConfig())
	check(t, err)
	parse := func(s string) *url.URL {
		u, err := url.Parse(s)
		check(t, err)
		return u
	}
	theirs, _ := feed(&hop.Upstream{Name: "cloud", URL: parse(w.cloud.URL()), Client: client, Consistent: true})
	plain := w.hub()
	mine, f := feed(&hop.Upstream{
		Name: source.Gate, URL: parse(w.at), Client: uplink.Client(plain.client.Transport), Progress: true, Delta: true,
	})
	defer func() {
		cancel()
		for range 2 {
			check(t, <-ended)
		}
		client.CloseIdleConnections()
	}()
	same := func(what string, version string) {
		t.Helper()
		testkit.Until(t, patience, what, func() bool {
			a, b := mine.Object("a/s-0"), theirs.Object("a/s-0")
			return a != nil && b != nil && fmt.Sprint(a.Version) == version && a.Version == b.Version
		})
		n := 0
		for want := range theirs.Objects() {
			n++
			if got := mine.Object(want.Key); got == nil || string(got.Raw) != string(want.Raw) {
				t.Errorf("%s: %s is another one", what, want.Key)
			}
		}
		if n < 6 {
			t.Errorf("%s: %d objects", what, n)
		}
	}
	first, err := w.kube.DiscoveryV1().EndpointSlices("a").Get(t.Context(), "s-0", metav1.GetOptions{})
	check(t, err)
	same("the first list", first.ResourceVersion)
	testkit.Until(t, patience, "the raw watch to have begun", func() bool { return raw.len() > 0 })
	before := raw.len()
	const changes = 20
	last := ""
	for i := range changes {
		last = w.change(t, "a", "s-0", fmt.Sprint("word ", i)).ResourceVersion
	}
	same("changes", last)
	if s := f.Status(); s.Mismatches != 0 || s.Lists.Total() != 1 {
		t.Errorf("%+v", s)
	}
	testkit.Until(t, patience, "the raw watch to have it", func() bool { return raw.len() > before })
	size := first.Size()
	if each := (raw.len() - before) / changes; each > size/4 {
		t.Errorf("a change of a word cost %d bytes of an object of %d", each, size)
	}
}

// testFrozen: while kube-apiserver hangs, nobody takes the gate for the cloud. Afterwards it goes on where it was.
func testFrozen(t *testing.T, w *world) {
	hub, admin, nobody := w.hub(), w.admin(), w.caller(nil, "")
	lists := `weir_gate_lists_total{resource="` + slices + `"}`
	before := admin.metric(t, lists)
	if before == "" || before == "0" {
		t.Errorf("listed %q times", before)
	}
	open := hub.watch(t, slicesAt+"?watch=1")
	if open.code != http.StatusOK {
		t.Fatal(open.code)
	}
	testkit.Until(t, patience, "the first events", func() bool { return open.len() > 0 })
	if code, _ := hub.ask(http.MethodGet, slicesAt, ""); code != http.StatusOK {
		t.Errorf("before: %d", code)
	}
	check(t, w.cloud.APIServer().Freeze())
	thaw := func() { check(t, w.cloud.APIServer().Thaw()) }
	defer thaw()
	testkit.Value(t, patience, "the watch to end", open.over)
	resp, err := hub.open(t.Context(), http.MethodGet, w.at+slicesAt, "")
	check(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a read: %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
	if again := hub.watch(t, slicesAt+"?watch=1"); again.code != http.StatusServiceUnavailable {
		t.Errorf("a watch: %d", again.code)
	}
	if code, _ := nobody.ask(http.MethodGet, "/readyz", ""); code == http.StatusOK {
		t.Error("it says that it is ready")
	}
	if code, _ := nobody.ask(http.MethodGet, "/healthz", ""); code != http.StatusOK {
		t.Errorf("it would be restarted: %d", code)
	}
	thaw()
	testkit.Until(t, patience, "reads to be served", func() bool {
		code, _, err := hub.try(http.MethodGet, slicesAt, "")
		return err == nil && code == http.StatusOK
	})
	last := w.change(t, "a", "s-1", "after it").ResourceVersion
	typed := hub.typed(t)
	testkit.Until(t, patience, "what was written afterwards", func() bool {
		got, err := typed.DiscoveryV1().EndpointSlices("a").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(got.Items) > 1 && got.Items[1].ResourceVersion == last
	})
	testkit.Until(t, patience, "it to be ready", func() bool {
		code, _, err := nobody.try(http.MethodGet, "/readyz", "")
		return err == nil && code == http.StatusOK
	})
	if after := admin.metric(t, lists); after != before {
		t.Errorf("listed %s times, and %s before", after, before)
	}
	if n := admin.metric(t, `weir_gate_behind_total{resource="`+slices+`"}`); n == "" {
		t.Error("weir_gate_behind_total does not say that readers were sent away")
	}
}
