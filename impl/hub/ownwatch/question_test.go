package ownwatch

import (
	"net/http"
	"testing"

	"github.com/weir-edge/weir/impl/hub/uplink"
)

// TestQuestion: what is not the node's own, is not asked by the node itself, or is no watch that goes on, passes as it
// is.
func TestQuestion(t *testing.T) {
	s := newSite(t)
	const itsNode = "/api/v1/nodes?watch=true&allowWatchBookmarks=true&fieldSelector=metadata.name%3Dedge-1"
	for uri, want := range map[string]bool{
		asList:                           true,
		itsPods + "&resourceVersion=10":  true,
		itsNode + "&resourceVersion=10":  true,
		itsNode + "&sendInitialEvents=1": true,
		itsPods:                          false, // from now on
		itsPods + "&resourceVersion=0":   false,
		itsPods + "&resourceVersion=x":   false,
		"/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dedge-1&resourceVersion=10":                              false,
		"/api/v1/pods?watch=1&allowWatchBookmarks=1&resourceVersion=10":                                             false,
		"/api/v1/pods?watch=1&allowWatchBookmarks=1&resourceVersion=10&fieldSelector=spec.nodeName%3Dedge-2":        false,
		"/api/v1/pods?watch=1&allowWatchBookmarks=1&resourceVersion=10&fieldSelector=spec.nodeName!%3Dedge-1":       false,
		"/api/v1/pods?allowWatchBookmarks=1&resourceVersion=10&fieldSelector=spec.nodeName%3Dedge-1":                false,
		"/api/v1/nodes?watch=1&allowWatchBookmarks=1&resourceVersion=10&fieldSelector=metadata.name%3Dedge-2":       false,
		"/api/v1/secrets?watch=1&allowWatchBookmarks=1&resourceVersion=10&fieldSelector=metadata.name%3Dedge-1":     false,
		"/api/v1/namespaces/a/pods?watch=1&allowWatchBookmarks=1&resourceVersion=1&fieldSelector=spec.nodeName%3De": false,
		"/api/v1/nodes/edge-1?watch=1&allowWatchBookmarks=1&resourceVersion=10":                                     false,
	} {
		if got := s.question(uri) != nil; got != want {
			t.Errorf("%s: %v, want %v", uri, got, want)
		}
	}
	for name, change := range map[string]func(*http.Request) *http.Request{
		"a token": func(r *http.Request) *http.Request {
			r.Header.Set("Authorization", "Bearer abc")
			return r
		},
		"another's name": func(r *http.Request) *http.Request {
			r.Header.Set("Impersonate-User", "ann")
			return r
		},
		"metadata alone": func(r *http.Request) *http.Request {
			r.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
			return r
		},
		"an expired certificate": func(r *http.Request) *http.Request {
			return r.WithContext(uplink.Lapse(r.Context()))
		},
		"a write": func(r *http.Request) *http.Request {
			r.Method = http.MethodDelete
			return r
		},
		"an upgrade": func(r *http.Request) *http.Request {
			r.Header.Set("Upgrade", "websocket")
			return r
		},
	} {
		if s.questionOf(change(ask(asList))) != nil {
			t.Errorf("%s does not pass", name)
		}
	}
}
