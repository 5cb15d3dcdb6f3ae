package relay

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	kubectlGet = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
	widgets    = "/apis/example.com/v1/widgets"
)

// inCloud answers as whoever is behind Fallback.
var inCloud = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from the cloud") })

func widgetRelay(t *testing.T, change ...func(*Config)) *Relay {
	t.Helper()
	res, err := ParseResource("widgets.v1.example.com=Widget")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, append([]func(*Config){func(c *Config) { c.Resource = res }}, change...)...)
	o, err := wire.ParseObject(wire.JSON, []byte(
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a","uid":"u","resourceVersion":"5"},"spec":{"color":"red"}}`))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, r, 10, o)
	return r
}

// TestTablesOfKindsWithoutColumns: what only the cloud can answer comes from there, and while it is away, or where there is none, kubectl gets the
// plain list that it names last.
func TestTablesOfKindsWithoutColumns(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(*Config)
		accept string
		code   int
		body   string
	}{
		"a hub with its cloud":                   {func(c *Config) { c.Fallback = inCloud }, kubectlGet, 200, "from the cloud"},
		"a hub whose cloud is away":              {func(c *Config) { c.Fallback, c.Alone = inCloud, func() bool { return true } }, kubectlGet, 200, `"kind":"WidgetList"`},
		"a hub whose cloud is not":               {func(c *Config) { c.Fallback, c.Alone = inCloud, func() bool { return false } }, kubectlGet, 200, "from the cloud"},
		"a coordinator":                          {func(*Config) {}, kubectlGet, 200, `"kind":"WidgetList"`},
		"tables only, a coordinator":             {func(*Config) {}, "application/json;as=Table;v=v1;g=meta.k8s.io", 406, "NotAcceptable"},
		"tables only, a hub whose cloud is away": {func(c *Config) { c.Fallback, c.Alone = inCloud, func() bool { return true } }, "application/json;as=Table;v=v1;g=meta.k8s.io", 200, "from the cloud"},
		"yaml, a coordinator":                    {func(*Config) {}, "application/yaml", 406, "NotAcceptable"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := get(t, serve(t, widgetRelay(t, c.set)), widgets, c.accept)
			if resp.StatusCode != c.code || !strings.Contains(string(body), c.body) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
}

// TestDeclaredFields: a CRD may declare fields to select by, which the cloud knows. They are never ignored.
func TestDeclaredFields(t *testing.T) {
	const query = "?fieldSelector=spec.color%3Dred"
	srv := serve(t, widgetRelay(t, func(c *Config) { c.Fallback = inCloud }))
	for _, q := range []string{query, query + "&watch=1", query + ",metadata.namespace%3Da"} {
		if _, body := get(t, srv, widgets+q, ""); string(body) != "from the cloud" {
			t.Errorf("%s: %s", q, body)
		}
	}
	if _, body := get(t, srv, widgets+"?fieldSelector=metadata.name%3Dw", ""); !strings.Contains(string(body), `"color":"red"`) {
		t.Errorf("by name: %s", body)
	}
	if resp, body := get(t, serve(t, widgetRelay(t)), widgets+query, ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("nobody to ask: %d %s", resp.StatusCode, body)
	}
	known := newRelay(t, func(c *Config) { c.Fallback = inCloud })
	replace(t, known, 10)
	if resp, body := get(t, serve(t, known), slicesPath+query, ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("a built-in type: %d %s", resp.StatusCode, body)
	}
}

// TestParameters holds what is refused to what kube-apiserver refuses.
func TestParameters(t *testing.T) {
	srv := serve(t, widgetRelay(t, func(c *Config) { c.Fallback = inCloud }))
	for _, c := range []struct {
		path, accept string
		code         int
		body         string
	}{
		{"/apis/example.com/v1/widgets?timeout=abc", "", 400, "invalid timeout specified in the request URL"},
		{"/apis/example.com/v1/widgets?timeout=5s", "", 200, "WidgetList"},
		{"/apis/example.com/v1/namespaces/a/widgets/w?export=true", "", 400, "the export parameter"},
		{"/apis/example.com/v1/namespaces/a/widgets/w?export=false", "", 200, "red"},
		{"/apis/example.com/v1/widgets?export=true", "", 200, "WidgetList"},
		{"/apis/example.com/v1/widgets?pretty=true", "", 200, "from the cloud"},
		{"/apis/example.com/v1/widgets", "application/*", 406, ""},
		{"/apis/example.com/v1/widgets", "application/json;q=0", 200, "WidgetList"},
		{"/apis/example.com/v1/widgets", "*/*", 200, "WidgetList"},
	} {
		if resp, body := get(t, srv, c.path, c.accept); resp.StatusCode != c.code || !strings.Contains(string(body), c.body) {
			t.Errorf("%s %s: %d %s", c.path, c.accept, resp.StatusCode, body)
		}
	}
}

// TestOldNamesOfFields: spec.host is spec.nodeName to kube-apiserver.
func TestOldNamesOfFields(t *testing.T) {
	res, err := ParseResource("pods.v1.")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, func(c *Config) { c.Resource = res })
	replace(t, r, 10)
	if resp, body := get(t, serve(t, r), "/api/v1/pods?fieldSelector=spec.host%3Da", ""); resp.StatusCode != http.StatusOK {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// TestDeprecationIsSaid: kubectl prints the warning that kube-apiserver sends with Endpoints.
func TestDeprecationIsSaid(t *testing.T) {
	res, err := ParseResource("endpoints.v1.")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, func(c *Config) { c.Resource = res })
	replace(t, r, 10)
	resp, _ := get(t, serve(t, r), "/api/v1/endpoints", "")
	if got, want := resp.Header.Get("Warning"), `299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	slices := newRelay(t)
	replace(t, slices, 10)
	if resp, _ := get(t, serve(t, slices), slicesPath, ""); resp.Header.Get("Warning") != "" {
		t.Errorf("slices: %s", resp.Header.Get("Warning"))
	}
}

// TestNoWatchIsForEver: whoever may watch is asked when a watch begins, so it ends, however long its client wants it to last.
func TestNoWatchIsForEver(t *testing.T) {
	for _, seconds := range []string{"", "&timeoutSeconds=1000000000", "&timeoutSeconds=9223372036854775807"} {
		clock := testingclock.NewFakeClock(time.Now())
		r := newRelay(t, withClock(clock))
		replace(t, r, 10)
		w := watch(t, serve(t, r), "resourceVersion=10"+seconds)
		eventually(t, "the watch to sleep", func() bool { return r.Status().Watchers == 1 && clock.HasWaiters() })
		clock.Step(minWatch - time.Second)
		apply(t, r, wire.Added, slice(t, "a/x", 11))
		w.want("ADDED a/x 11")
		eventually(t, "the watch to sleep", clock.HasWaiters)
		clock.Step(minWatch + time.Second)
		w.want("EOF")
	}
}

// TestQuietResourceIsResumed: a client that was away for longer than the ring remembers resumes if nothing happened meanwhile, whatever bookmarks came.
func TestQuietResourceIsResumed(t *testing.T) {
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
	for version := range uint64(3) {
		bookmark(t, r, 20+version)
		clock.Step(2 * time.Minute)
		eventually(t, "an empty ring", func() bool { return r.Status().RingEvents == 0 })
	}
	apply(t, r, wire.Added, slice(t, "a/y", 30))
	if r.Resumable(10) || !r.Resumable(11) || !r.Resumable(20) {
		t.Error("resumable at 10, or not at 11 and 20")
	}
	watch(t, serve(t, r), "resourceVersion=11").want("ADDED a/y 30")
}
