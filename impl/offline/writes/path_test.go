package writes

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/request"
)

// FuzzTarget: what is queued is what kube-apiserver would have been asked to write.
func FuzzTarget(f *testing.F) {
	for _, uri := range []string{
		"/api/v1/nodes/edge-1/status", "//api/v1/nodes/edge-1/status", "/api/v1/nodes/edge-1/status/",
		"/api/v1//nodes/edge-1", "/api/v1/namespaces/a/pods/x/status", "/api/v1/namespaces/a/pods/x/status/more",
		"/api/v1/namespaces/status/events", "/api/v1/namespaces/a/status", "/api/v1/watch/nodes/edge-1/status",
		"/api/v1/proxy/nodes/edge-1/status", "/apis/events.k8s.io/v1/namespaces/a/events",
		"/api/v1/namespaces/a/serviceaccounts/x/token",
	} {
		for m := range uint8(4) {
			f.Add(uri, m)
		}
	}
	kube := genericrequest.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	f.Fuzz(func(t *testing.T, uri string, method uint8) {
		u, err := url.ParseRequestURI(uri)
		if err != nil || u.Opaque != "" { // the hub answers 400
			return
		}
		req := &http.Request{
			Method: []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}[method%4], URL: u,
		}
		asked := request.Parse(req)
		r := &write{target: targetOf(asked), verb: asked.Verb}
		if asked.Odd || !r.answerable() {
			return
		}
		info, err := kube.NewRequestInfo(req)
		if err != nil || !info.IsResourceRequest || r.verb != info.Verb || r.Group != info.APIGroup ||
			r.Version != info.APIVersion || r.Resource.Name != info.Resource ||
			r.namespace != info.Namespace || r.name != info.Name || r.sub != info.Subresource {
			t.Fatalf("%q is %+v, and %+v for kube-apiserver: %v", uri, r, info, err)
		}
	})
}
