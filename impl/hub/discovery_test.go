package hub

import (
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/documents"
	"github.com/weir-edge/weir/impl/request"
)

// discoveryOf is an API discovery document.
func discoveryOf(group string) string {
	return `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},` +
		`"items":[{"metadata":{"name":"` + group + `"}}]}` + "\n"
}

// TestDocumentsShared: a pool asks the cloud once for what all its hubs need: API discovery, the version, and the keys
// of service accounts.
func TestDocumentsShared(t *testing.T) {
	of := newIssuer(t)
	token := func(node string) []string { return []string{"Authorization", "Bearer " + of.token("web", node)} }

	nodes := []string{"edge-1", "edge-2", "edge-3"}
	p := newPoolBed(t, nodes...)
	cloud := p.clouds[0]
	cloud.set(func() {
		cloud.docs = map[string]string{
			"/api": discoveryOf("v1"), "/apis": discoveryOf("apps"), documents.Version: `{"major":"1"}`,
			documents.Keys: string(of.keys),
		}
	})
	p.start(nodes...)
	eventually(t, "one hub to lead and the others to follow", func() bool { return p.settled(nodes...) != "" })
	leader := p.settled(nodes...)
	uses := func(n string) {
		eventually(t, n+" to know the keys", func() bool {
			resp, _ := get(t, p.hubs[n].client(nil), p.hubs[n].url()+"/echo/", token(n)...)
			return resp.StatusCode == http.StatusOK && p.hubs[n].hub.judge.Keys() != nil
		})
	}
	uses(leader)
	for _, k := range []documents.Key{
		{Path: "/api", Accept: documents.Accept}, {Path: "/apis", Accept: documents.Accept},
		{Path: documents.Version, Accept: runtime.ContentTypeJSON}, {Path: documents.Keys},
	} {
		eventually(t, "the coordinator to have "+k.Path, func() bool { return p.coordinator.now.Documents.Get(k) != nil })
	}
	for _, n := range nodes {
		uses(n)
		check(t, p.hubs[n].hub.shelter.Prefetch(t.Context()))
		for path, accept := range map[string]string{
			"/api": documents.Accept, "/apis": documents.Accept, documents.Version: runtime.ContentTypeJSON,
		} {
			req, err := http.NewRequest(http.MethodGet, "https://cloud"+path, nil)
			check(t, err)
			req.Header.Set("Accept", accept)
			if !p.hubs[n].hub.shelter.Offline.Knows(contract.UserAgent, req, request.Parse(req)) {
				t.Errorf("%s does not keep %s", n, path)
			}
		}
	}
	asked := map[string]int{}
	cloud.set(func() {
		for _, s := range cloud.seen {
			if slices.Contains(documents.Shared, s.path) {
				asked[s.path]++
			}
		}
	})
	for _, path := range []string{documents.Version, documents.Keys} {
		if asked[path] != 1 {
			t.Errorf("%s was asked for %d times by a pool", path, asked[path])
		}
	}
	for _, path := range documents.Paths { // as protobuf, which this cloud has not, and as JSON
		if asked[path] > 2 {
			t.Errorf("%s was asked for %d times by a pool", path, asked[path])
		}
	}
}
