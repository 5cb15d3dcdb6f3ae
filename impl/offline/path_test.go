package offline

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/request"
)

// FuzzParse: what the store answers is what kube-apiserver would have been asked for.
func FuzzParse(f *testing.F) {
	for _, uri := range []string{
		"/api/v1/pods", "//api/v1/pods", "/api/v1/pods/", "/api/v1//pods", "/api/v1/namespaces/a/../b/pods",
		"/api/v1/namespaces/a/pods/x/status", "/api/v1/namespaces/a", "/api/v1/namespaces",
		"/api/v1/namespaces/a/status", "/api/v1/namespaces/a/", "/api/v1/watch/pods", "/apis/apps/v1/deployments?watch=1",
		"/apis/apps/v1", "/api/v1/namespaces//pods", "/api/v1/pods?watch=0&watch=1",
	} {
		f.Add(uri, true)
	}
	kube := genericrequest.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	f.Fuzz(func(t *testing.T, uri string, read bool) {
		u, err := url.ParseRequestURI(uri)
		if err != nil || u.Opaque != "" { // the hub answers 400
			return
		}
		req := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}
		if !read {
			req.Method = http.MethodPut
		}
		q := request.Parse(req)
		if !ofObjects(q) {
			return
		}
		info, err := kube.NewRequestInfo(req)
		if err != nil || !info.IsResourceRequest {
			t.Fatalf("%q is %+v, and nothing for kube-apiserver: %v", uri, q, err)
		}
		if read && q.Verb != info.Verb || q.Resource.Group != info.APIGroup || q.Resource.Version != info.APIVersion ||
			q.Resource.Name != info.Resource {
			t.Fatalf("%q is %+v, and %+v for kube-apiserver", uri, q, info)
		}
		namespace := info.Namespace
		if info.Resource == "namespaces" && info.Name == info.Namespace { // the store knows it as an object in none
			namespace = ""
		}
		selected := q.Name == "" && info.Verb != "get" // one that a selector names is a collection of one in the store
		if q.In() != namespace || q.Name != info.Name && !selected ||
			q.Subresource != info.Subresource && len(info.Parts) < 4 {
			t.Fatalf("%q is %+v, and %+v for kube-apiserver", uri, q, info)
		}
	})
}
