package filter

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// TestStuckClientHoldsNobody: a client that takes nothing is told of another topology when it takes something again; the Services that taught it pass on.
func TestStuckClientHoldsNobody(t *testing.T) {
	b := newBed(t, everything)
	q := request{use: use{"coredns", slicesOf}, rules: b.rules[use{"coredns", slicesOf}], watch: true, client: "stuck", query: url.Values{"resourceVersion": {"100"}}}
	s := newStream(b.Filters, httptest.NewRecorder(), q, wire.Protobuf, func() {})
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
		q, ok := b.match(req)
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
