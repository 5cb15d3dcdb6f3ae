package hub

import (
	"net/http"
	"strings"
	"testing"
)

// TestNamespaceWithoutCloud: what a request is authorized by is what is looked for. A Namespace, which is authorized in itself and stands in none, may be read
// by who was shown it in a list.
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
	for path, want := range map[string]int{"a": http.StatusOK, "b": http.StatusServiceUnavailable, "a/status": http.StatusServiceUnavailable} {
		resp, body := get(t, node, b.url()+"/api/v1/namespaces/"+path)
		if resp.StatusCode != want || want == http.StatusOK && !strings.Contains(body, `"name":"a"`) {
			t.Errorf("namespaces/%s: %s, want %d: %s", path, resp.Status, want, body)
		}
	}
}
