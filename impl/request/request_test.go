package request

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/filters"
)

var theirs = apirequest.RequestInfoFactory{
	APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
}

// lasts is how kube-apiserver calls it (BuildGenericConfig of pkg/controlplane/apiserver).
var lasts = filters.BasicLongRunningRequestCheck(sets.NewString("watch", "proxy"),
	sets.NewString("attach", "exec", "proxy", "log", "portforward"))

// agree compares with kube-apiserver's reading.
func agree(t *testing.T, req *http.Request) {
	t.Helper()
	r := Parse(req)
	info, err := theirs.NewRequestInfo(req)
	if err != nil {
		if !r.Odd {
			t.Errorf("%s %s: kube-apiserver says %v", req.Method, req.URL, err)
		}
		return
	}
	if len(req.URL.Query().Get("fieldSelector")) > MaxSelector {
		return // it is not looked into
	}
	if got := r.IsResource; got != info.IsResourceRequest {
		t.Fatalf("%s %s: a resource: %v, want %v", req.Method, req.URL, got, info.IsResourceRequest)
	}
	if got, want := r.Lasts(), lasts(req, info); got != want {
		t.Errorf("%s %s: lasts: %v, want %v", req.Method, req.URL, got, want)
	}
	for _, c := range []struct{ what, got, want string }{
		{"verb", r.Verb, info.Verb}, {"group", r.Resource.Group, info.APIGroup},
		{"version", r.Resource.Version, info.APIVersion}, {"resource", r.Resource.Name, info.Resource},
		{"subresource", r.Subresource, info.Subresource}, {"namespace", r.Namespace, info.Namespace},
		{"name", r.Authorized(), info.Name}, {"path", r.Path, info.Path},
		{"field selector", r.FieldSelector, info.FieldSelector}, {"label selector", r.LabelSelector, info.LabelSelector},
	} {
		if c.got != c.want {
			t.Errorf("%s %s: %s %q, want %q", req.Method, req.URL, c.what, c.got, c.want)
		}
	}
}

var paths = []string{
	"/", "/version", "/api", "/api/v1", "/apis/apps", "/apis/apps/v1", "/api/v1/pods", "/api/v1/pods/",
	"/api/v1/namespaces", "/api/v1/namespaces/a",
	"/api/v1/namespaces/a/status", "/api/v1/namespaces/a/finalize", "/api/v1/namespaces/a/pods",
	"/api/v1/namespaces/a/pods/web/status", "/api/v1/namespaces/a/pods/web/proxy/x/y",
	"/apis/discovery.k8s.io/v1/endpointslices", "/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/b",
	"/api/v1/watch/pods", "/api/v1/proxy/nodes/a/b", "/api/v1/watch",
	"/api/v1/namespaces/a/pods/web/log", "/api/v1/namespaces/a/pods/web/exec", "/api/v1/namespaces/a/pods/web/attach",
	"/api/v1/namespaces/a/pods/web/portforward", "/debug/pprof/profile", "/debug/pprof", "/watch", "/log",
	"/api/v1//pods", "/apis//v1/pods", "/api//pods", "/api/v1/namespaces//pods", "/api/v1/pods/..", "//api/v1/pods",
	"/healthz/x/y/z", "/api/v1/watch/namespaces/a/pods/b",
}

var queries = []string{
	"", "watch=1", "watch=true", "watch=false", "watch=0", "watch=FALSE", "watch=t", "watch", "watch=&watch=0",
	"fieldSelector=metadata.name%3Dx", "fieldSelector=metadata.name%3D..",
	"fieldSelector=metadata.name%3Dx,spec.nodeName%3Dy&labelSelector=a%3Db", "fieldSelector=%3D%3D",
	"labelSelector=a&labelSelector=b", "fieldSelector=metadata.name%3Dx&watch=1",
}

// TestParse: each path and query means what it means to kube-apiserver, for each method.
func TestParse(t *testing.T) {
	for _, path := range paths {
		for _, query := range queries {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
				req := httptest.NewRequest(method, "http://x/", nil)
				req.URL = &url.URL{Path: path, RawQuery: query}
				agree(t, req)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for i, path := range paths {
		f.Add("GET", path, queries[i%len(queries)])
	}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		if strings.ContainsAny(method, " \t\r\n") {
			return
		}
		req := httptest.NewRequest(http.MethodGet, "http://x/", nil)
		req.Method, req.URL = method, &url.URL{Path: path, RawQuery: query}
		agree(t, req)
	})
}

// TestOdd: what a proxy or a server might read in another way is the cloud's to judge. A slash at the end is not.
func TestOdd(t *testing.T) {
	for uri, want := range map[string]bool{
		"/api/v1/pods": false, "/api/v1/pods/": false, "/apis/apps/v1/namespaces/a/deployments/d/scale": false,
		"/version": false, "//version": false,
		"//api/v1/pods": true, "/api/v1/pods//": true, "/apis//v1/pods": true, "/api//pods": true,
		"/api/v1/namespaces//pods": true, "/api/v1/namespaces/../pods": true, "/api/./pods": true,
		"/api/v1/watch/pods": true, "/api/v1/proxy/nodes/a": true, "/api/v1/pods?labelSelector=" +
			strings.Repeat("a", MaxSelector): false,
		"/api/v1/pods?labelSelector=" + strings.Repeat("a", MaxSelector+1): true, "/api/v1/pods?fieldSelector=" +
			strings.Repeat("a", MaxSelector+1): true,
	} {
		if got := Parse(&http.Request{Method: http.MethodGet, URL: parsed(t, uri)}).Odd; got != want {
			t.Errorf("%.60s: %v", uri, got)
		}
	}
}

func parsed(t *testing.T, uri string) *url.URL {
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
