package filter

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// TestStuckClientHoldsNobody: a client that takes nothing is told of another topology when it takes something again;
// the Services that taught it pass on.
func TestStuckClientHoldsNobody(t *testing.T) {
	b := newBed(t, everything)
	asked := request.Parse(httptest.NewRequest(http.MethodGet, slicesPath+"?watch=1&resourceVersion=100", nil))
	q := reading{asked: asked, use: use{"coredns", slicesOf}, rules: b.rules[use{"coredns", slicesOf}], client: "stuck"}
	s := newStream(&b.topology, httptest.NewRecorder(), q, wire.Protobuf, func() {})
	s.begin()
	before := s.view
	s.mu.Lock() // as while a write to the client does not end
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.setMembers([]string{"edge-2"})
		b.setMembers([]string{"edge-2", "edge-3"})
	}()
	eventually(t, "the others to go on", func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	s.mu.Unlock()
	eventually(t, "the client to be told", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.view != before && s.view == b.now()
	})
	s.end()
}

// TestSameName: who calls itself as another client does is not taken for it.
func TestSameName(t *testing.T) {
	b := newBed(t, everything)
	client := func(token string) string {
		req := httptest.NewRequest(http.MethodGet, slicesPath+"?labelSelector=a", nil)
		req.Header.Set("User-Agent", "kube-proxy/v1.37.1 (linux/amd64)")
		req.Header.Set("Authorization", "Bearer "+token)
		q, ok := b.match(req, request.Parse(req))
		if !ok {
			t.Fatal("not filtered")
		}
		return q.client
	}
	first, again := client("a"), client("a")
	if first == client("b") || first != again {
		t.Error("clients are known by what they call themselves")
	}
}

// TestSpellings: a request is filtered as kube-apiserver reads it, however its client writes that.
func TestSpellings(t *testing.T) {
	b := newBed(t, everything)
	const none = "unfiltered"
	for uri, want := range map[string]string{
		slicesPath: "list", slicesPath + "/": "list", slicesPath + "?watch=0": "list", slicesPath + "?watch=False": "list",
		slicesPath + "?watch": "watch", slicesPath + "?watch=t": "watch", slicesPath + "?watch=yes": "watch",
		"/apis/discovery.k8s.io/v1/watch/endpointslices":            "watch",
		"/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/x":   "get",
		"/apis/discovery.k8s.io/v1/namespaces/a/endpointslices/x/y": none,
		"/apis/discovery.k8s.io/v1beta1/endpointslices":             none, "/api/v1/endpointslices": none,
	} {
		req := httptest.NewRequest(http.MethodGet, uri, nil)
		req.Header.Set("User-Agent", "kube-proxy/v1.37.1 (linux/amd64)")
		got := none
		if q, ok := b.match(req, request.Parse(req)); ok {
			got = q.asked.Verb
		}
		if got != want {
			t.Errorf("%s is %s, want %s", uri, got, want)
		}
	}
	for query, want := range map[string]uint64{
		"": 100, "&sendInitialEvents=false": 100, "&sendInitialEvents=true": 0, "&sendInitialEvents=1": 0,
	} {
		asked := request.Parse(httptest.NewRequest(http.MethodGet, slicesPath+"?watch=1&resourceVersion=100"+query, nil))
		if s := newStream(&b.topology, httptest.NewRecorder(), reading{asked: asked}, wire.Protobuf, func() {}); s.position !=
			want {
			t.Errorf("with %q the client has version %d, want %d", query, s.position, want)
		}
	}
}

// TestForgottenClientLists: of a client that was forgotten nobody knows what it has, however new its version is. It has
// to list, also if it did not hear so.
func TestForgottenClientLists(t *testing.T) {
	b := newBed(t, everything)
	b.setMembers([]string{"edge-1", "edge-2"})
	b.listed("kube-proxy", b.now())
	for i := range maxClients {
		b.listed(fmt.Sprint(i), b.now())
	}
	b.setMembers([]string{"edge-1"})
	ahead := b.slices.Status().Version + 50
	for range 2 {
		v, ok := b.had("kube-proxy", ahead)
		if ok {
			t.Errorf("it is said to have %v", v.members)
		}
		b.told("kube-proxy", v, b.now(), ahead, true)
	}
	b.listed("kube-proxy", b.now())
	if v, ok := b.had("kube-proxy", ahead); !ok || v != b.now() {
		t.Errorf("who has listed has %v, %v", v, ok)
	}
}

// TestRelayBehindItsClients: after a restart the relay is at what the disk held, and clients have seen more. What
// changes then is told to them all the same.
func TestRelayBehindItsClients(t *testing.T) {
	c := everything
	c.File = filepath.Join(t.TempDir(), "topology")
	b := newBed(t, c)
	b.setMembers([]string{"edge-1", "edge-2"})
	again := newBed(t, c)
	again.setMembers([]string{"edge-1"})
	ahead := again.slices.Status().Version + 50
	if v, ok := again.had("kube-proxy", ahead); !ok || !v.members["edge-2"] {
		t.Errorf("who comes back at %d has %v, %v", ahead, v.members, ok)
	}
	again.listed("coredns", again.now())
	if v, ok := again.had("coredns", ahead); !ok || v.members["edge-2"] {
		t.Errorf("who was shown all has %v, %v", v.members, ok)
	}
}
