package door

import (
	"net/http"
	"net/url"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/scope"
)

// FuzzPath: what the hub reads from a request line is what kube-apiserver authorizes it by, or the cloud answers.
func FuzzPath(f *testing.F) {
	for _, uri := range []string{
		"/api/v1/endpoints", "//api/v1/endpoints", "/api/v1/endpoints/", "/api//v1/endpoints",
		"/api/v1/namespaces/a/../b/endpoints", "/api/v1/namespaces/a%2f..%2fb/endpoints",
		"/API/v1/endpoints", "/api/v1/namespaces/a/endpoints/x", "/api/v1/namespaces/a/endpoints/x/status",
		"/api/v1/namespaces//endpoints", "/api/v1/namespaces/status/endpoints",
		"/api/v1/namespaces/a/status", "/api/v1/namespaces/a/finalize/x", "/api/v1/watch/endpoints",
		"/api/v1/proxy/endpoints/x", "/api/v1/watch", "/apis/discovery.k8s.io/v1/endpointslices?watch",
		"/apis/discovery.k8s.io/v1/endpointslices?watch=0&watch=1", "/apis/discovery.k8s.io/v1/endpointslices?watch=FALSE",
		"/apis/discovery.k8s.io/v1/endpointslices?watch=true;x",
		"/api/v1/namespaces/a/endpoints?fieldSelector=metadata.name%3Dx",
		"/api/v1/endpoints?fieldSelector=metadata.name%3D..,metadata.namespace%3Da", "/api/v1/endpoints?watch=&limit=x",
		"/api/v1/endpoints/x", "/api/v1/namespaces/endpoints", "/version", "/apis", "/", "/api/v1", "/apis/apps/v1/",
		"/api/v1/endpoints?fieldSelector=a&fieldSelector=metadata.name%3Dx",
	} {
		f.Add(uri)
	}
	kube := genericrequest.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}
	relays := scope.NewSet()
	rt := relayed.Router(relays.All)
	for _, name := range []string{"endpoints.v1.", "endpointslices.v1.discovery.k8s.io"} {
		res, err := relay.ParseResource(name)
		if err != nil {
			f.Fatal(err)
		}
		r, err := relay.New(relay.Config{Resource: res})
		if err != nil {
			f.Fatal(err)
		}
		relays.Add(r)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		u, err := url.ParseRequestURI(uri)
		if err != nil {
			return
		}
		req := &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}}
		if illFormed(req) != nil {
			return
		}
		info, err := kube.NewRequestInfo(req)
		agree := func(who string, a identity.Attributes) {
			if err != nil || !info.IsResourceRequest {
				t.Fatalf("%s: %q is %+v, and nothing for kube-apiserver: %v", who, uri, a, err)
			}
			want := identity.Attributes{
				Verb: info.Verb, Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource,
				Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
			}
			a.FieldSelector, a.LabelSelector = "", ""
			if a != want {
				t.Fatalf("%s: %q is %+v, and %+v for kube-apiserver", who, uri, a, want)
			}
		}
		asked := request.Parse(req)
		if target := rt.Route(asked); target != nil {
			agree("route", target.Rights)
		}
		switch a, ok := identity.AttributesOf(asked); {
		case !ok:
		case a.Path == "":
			agree("attributes", a)
		case err != nil || info.IsResourceRequest:
			t.Fatalf("%q is no resource, and %+v for kube-apiserver: %v", uri, info, err)
		}
	})
}
