package rest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

const (
	kubectlGet = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io," +
		"application/json"
	widgets = "/apis/example.com/v1/widgets"
)

// inCloud answers as anyone who is behind Fallback.
var inCloud = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "from the cloud") })

func widgetRelay(t *testing.T) *relay.Relay {
	t.Helper()
	res, err := relay.ParseResource("widgets.v1.example.com=Widget")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, func(c *relay.Config) { c.Resource = res })
	o, err := wire.ParseObject(wire.JSON, []byte(
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"a","uid":"u",`+
			`"resourceVersion":"5"},"spec":{"color":"red"}}`))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, r, 10, o)
	return r
}

// TestTablesOfKindsWithoutColumns: what only the cloud can answer comes from there, and while it is away, or where
// there is none, kubectl gets the plain list that it names last.
func TestTablesOfKindsWithoutColumns(t *testing.T) {
	for name, c := range map[string]struct {
		set    func(*Handler)
		accept string
		code   int
		body   string
	}{
		"a hub with its cloud": {behind(inCloud), kubectlGet, 200, "from the cloud"},
		"a hub whose cloud is away": {
			func(h *Handler) {
				h.Fallback, h.Alone = inCloud, func() bool { return true }
			}, kubectlGet, 200, `"kind":"WidgetList"`,
		},
		"a hub whose cloud is not": {
			func(h *Handler) { h.Fallback, h.Alone = inCloud, func() bool { return false } }, kubectlGet, 200, "from the cloud",
		},
		"a coordinator": {func(*Handler) {}, kubectlGet, 200, `"kind":"WidgetList"`},
		"tables only, a coordinator": {
			func(*Handler) {}, "application/json;as=Table;v=v1;g=meta.k8s.io", 406, "NotAcceptable",
		},
		"tables only, a hub whose cloud is away": {
			func(h *Handler) {
				h.Fallback, h.Alone = inCloud, func() bool { return true }
			}, "application/json;as=Table;v=v1;g=meta.k8s.io", 200, "from the cloud",
		},
		"yaml, a coordinator": {func(*Handler) {}, "application/yaml", 406, "NotAcceptable"},
	} {
		t.Run(name, func(t *testing.T) {
			resp, body := get(t, serve(t, widgetRelay(t), c.set), widgets, c.accept)
			if resp.StatusCode != c.code || !strings.Contains(string(body), c.body) {
				t.Errorf("%d %s", resp.StatusCode, body)
			}
		})
	}
}

// TestDeclaredFields: a CRD may declare fields to select by, which the cloud knows. They are never ignored.
func TestDeclaredFields(t *testing.T) {
	const query = "?fieldSelector=spec.color%3Dred"
	srv := serve(t, widgetRelay(t), behind(inCloud))
	for _, q := range []string{query, query + "&watch=1", query + ",metadata.namespace%3Da"} {
		if _, body := get(t, srv, widgets+q, ""); string(body) != "from the cloud" {
			t.Errorf("%s: %s", q, body)
		}
	}
	if _, body := get(t, srv, widgets+"?fieldSelector=metadata.name%3Dw", ""); !strings.Contains(
		string(body), `"color":"red"`) {
		t.Errorf("by name: %s", body)
	}
	if resp, body := get(t, serve(t, widgetRelay(t)), widgets+query, ""); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("nobody to ask: %d %s", resp.StatusCode, body)
	}
	known := newRelay(t)
	replace(t, known, 10)
	if resp, body := get(t, serve(t, known, behind(inCloud)), slicesPath+query, ""); resp.StatusCode !=
		http.StatusBadRequest {
		t.Errorf("a built-in type: %d %s", resp.StatusCode, body)
	}
}

// TestParameters holds what is refused to what kube-apiserver refuses.
func TestParameters(t *testing.T) {
	srv := serve(t, widgetRelay(t), behind(inCloud))
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
		{"/apis/example.com/v1/namespaces/a/widgets/w?limit=many&labelSelector=%25", "", 200, "red"},
		{"/apis/example.com/v1//widgets", "", 404, "could not find"},
		{"//apis/example.com/v1/widgets", "", 404, "could not find"},
		{"/apis/example.com/v1/namespaces/a/widgets/w/status", "", 404, "could not find"},
		{"/apis/example.com/v1/widgets/w", "", 404, "could not find"},
		{"/apis/example.com/v1/widgets?limit=many", "", 400, ""},
		{"/apis/example.com/v1/widgets?labelSelector=" + strings.Repeat("x", 9000), "", 400, "more than"},
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
	res, err := relay.ParseResource("pods.v1.")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, func(c *relay.Config) { c.Resource = res })
	replace(t, r, 10)
	if resp, body := get(t, serve(t, r), "/api/v1/pods?fieldSelector=spec.host%3Da", ""); resp.StatusCode !=
		http.StatusOK {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

// TestDeprecationIsSaid: kubectl prints the warning that kube-apiserver sends with Endpoints.
func TestDeprecationIsSaid(t *testing.T) {
	res, err := relay.ParseResource("endpoints.v1.")
	if err != nil {
		t.Fatal(err)
	}
	r := newRelay(t, func(c *relay.Config) { c.Resource = res })
	replace(t, r, 10)
	resp, _ := get(t, serve(t, r), "/api/v1/endpoints", "")
	if got, want := resp.Header.Get("Warning"),
		`299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	slices := newRelay(t)
	replace(t, slices, 10)
	if resp, _ := get(t, serve(t, slices), slicesPath, ""); resp.Header.Get("Warning") != "" {
		t.Errorf("slices: %s", resp.Header.Get("Warning"))
	}
}
