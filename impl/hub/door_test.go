package hub

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-edge/weir/impl/request"
)

// TestParsedOnce: a request of a client is parsed where it comes in, and nowhere behind. What the hub asks itself is
// parsed where it asks.
func TestParsedOnce(t *testing.T) {
	found := map[string]int{}
	for _, dir := range []string{".", "*", "../identity", "../filter", "../offline", "../offline/writes", "../store"} {
		files, err := filepath.Glob(dir + "/*.go")
		check(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(gotoken.NewFileSet(), file, nil, 0)
			check(t, err)
			for _, d := range f.Decls {
				function, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				ast.Inspect(function, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Parse" {
						if x, ok := s.X.(*ast.Ident); ok && x.Name == "request" {
							found[file+" "+function.Name.Name]++
						}
					}
					return true
				})
			}
		}
	}
	if want := map[string]int{"door/door.go ServeHTTP": 1, "shelter/shelter.go Prefetch": 1}; !maps.Equal(found, want) {
		t.Errorf("requests are parsed in %v, want %v", found, want)
	}
}

// TestSentAsItCame: what the cloud gets is what came in at the door; see package door.
func TestSentAsItCame(t *testing.T) {
	b, _ := offlineBed(t)
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	b.start()
	b.here()
	node := b.client(&cert)
	get(t, node, b.url()+"/api/v1/endpoints")
	get(t, node, b.url()+"/api/v1/namespaces/default/endpoints/web/status")
	do(t, node, http.MethodDelete, b.url()+"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/x", nil)
	var paths []string
	want := []string{
		"/api/v1/endpoints", "/api/v1/namespaces/default/endpoints/web/status",
		"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/x",
	}
	b.clouds[0].set(func() {
		for _, s := range b.clouds[0].seen {
			if slices.Contains(want, s.path) {
				paths = append(paths, s.path)
			}
		}
	})
	if !slices.Equal(paths, want) {
		t.Errorf("sent %v, want %v", paths, want)
	}
}

// TestSpellingsWithoutCloud: what is authorized as a watch is answered as one, however that is written.
func TestSpellingsWithoutCloud(t *testing.T) {
	b, link := offlineBed(t)
	b.clouds[0].put("default", "web")
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node := b.client(&cert)
	b.start()
	b.here()
	b.list(node, "")
	b.kept(1)
	link.set(true)
	b.away()
	for spelling, want := range map[string]string{
		"": "list", "watch=0": "list", "watch=False": "list", "watch": "watch", "watch=": "watch", "watch=t": "watch",
		"watch=1": "watch",
	} {
		uri := "/api/v1/endpoints?timeoutSeconds=1&" + spelling
		req, err := http.NewRequest(http.MethodGet, "https://hub"+uri, nil)
		check(t, err)
		if verb := request.Parse(req).Verb; verb != want {
			t.Errorf("%q is authorized as a %s, want %s", spelling, verb, want)
		}
		resp, body := get(t, node, b.url()+uri)
		got := "list"
		if strings.HasPrefix(body, `{"type":"ADDED"`) {
			got = "watch"
		}
		if resp.StatusCode != http.StatusOK || got != want || !strings.Contains(body, `"web"`) {
			t.Errorf("%q is answered as a %s, want %s: %s %s", spelling, got, want, resp.Status, body)
		}
	}
}

// TestNamespaceWithoutCloud: what a request is authorized by is what is looked for. A Namespace, which is authorized in
// itself and stands in none, may be read by the one that was shown it in a list.
func TestNamespaceWithoutCloud(t *testing.T) {
	b, link := offlineBed(t)
	cert := b.ca.tls("system:node:edge-1", "system:nodes")
	node := b.client(&cert)
	b.start()
	b.here()
	get(t, node, b.url()+"/api/v1/namespaces?labelSelector=of%3Dus")
	b.kept(1)
	link.set(true)
	b.away()
	for path, want := range map[string]int{
		"a": http.StatusOK, "b": http.StatusServiceUnavailable, "a/status": http.StatusServiceUnavailable,
	} {
		resp, body := get(t, node, b.url()+"/api/v1/namespaces/"+path)
		if resp.StatusCode != want || want == http.StatusOK && !strings.Contains(body, `"name":"a"`) {
			t.Errorf("namespaces/%s: %s, want %d: %s", path, resp.Status, want, body)
		}
	}
}
