package thief

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/sim/testca"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// judge is a coordinator, a hub, or kube-apiserver.
type judge struct {
	*httptest.Server
	denies  atomic.Bool // requests: 401
	rejects atomic.Bool // handshakes
	over    chan struct{}
}

func newJudge(t *testing.T, a *testca.Authority) *judge {
	t.Helper()
	j := &judge{over: make(chan struct{})}
	j.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case j.denies.Load():
			w.WriteHeader(http.StatusUnauthorized)
		case req.Method == http.MethodPost:
			w.WriteHeader(http.StatusConflict)
		case req.URL.RawQuery == "watch=1":
			_ = http.NewResponseController(w).Flush()
			select {
			case <-j.over:
			case <-req.Context().Done():
			}
		}
	}))
	pair := must(a.Issue(testca.Request{CommonName: "server", Hosts: []string{"127.0.0.1"}}))
	j.TLS = &tls.Config{
		Certificates: []tls.Certificate{must(pair.TLS())}, ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13,
		VerifyConnection: func(tls.ConnectionState) error {
			if j.rejects.Load() {
				return http.ErrAbortHandler
			}
			return nil
		},
	}
	j.EnableHTTP2 = true
	j.Config.ErrorLog = nil
	j.StartTLS()
	t.Cleanup(j.Close)
	return j
}

// TestThief: what is granted is tried again until all of it is refused: by a status, or by an alert. A hub that is away
// refuses nothing, and a stream that goes on is told.
func TestThief(t *testing.T) {
	pool := must(testca.NewPoolAuthority("harbour"))
	coordinator, hub, cloud := newJudge(t, pool), newJudge(t, pool), newJudge(t, pool)
	at := func(j *judge) string { return strings.TrimPrefix(j.URL, "https://") }
	pair := must(pool.IssueTo(weirpki.Hub, weirpki.Subject{Pool: "harbour", Node: "edge-1"}, 0))
	th, err := New(t.Context(), Config{
		Pool: "harbour", Node: "edge-1", Hub: pair, Cloud: map[string]*testca.Pair{"node": pair}, PoolRoots: pool.Pool(),
		CloudRoots: pool.Pool(), CloudURL: cloud.URL,
		Coordinators: []string{at(coordinator)}, Peers: []string{at(hub)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer th.Close()
	left := func() []string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return th.Left(ctx)
	}
	about := func(list []string, words ...string) bool {
		return len(list) == len(words) && !slices.ContainsFunc(words, func(w string) bool {
			return !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, w) })
		})
	}
	if n := th.Granted(); n != 2+2+4+3 || len(left()) != n {
		t.Fatalf("%d granted, left %q", n, left())
	}
	coordinator.denies.Store(true)
	cloud.denies.Store(true)
	close(coordinator.over)
	testkit.Until(t, time.Minute, "streams of the coordinator to end", func() bool { return len(left()) == 3 })
	if l := left(); !about(l, "a feed of hub", "anew", "over an open connection") {
		t.Errorf("left: %q", l)
	}
	hub.rejects.Store(true)
	close(hub.over)
	testkit.Until(t, time.Minute, "the stream of the hub to end", func() bool { return len(left()) == 1 })
	testkit.Until(t, time.Minute, "the open connection to be left",
		func() bool { return about(left(), "over an open connection") })
	hub.denies.Store(true)
	// An alert may be lost with its connection: then nobody has said anything, and it is tried again.
	testkit.Until(t, time.Minute, "all to be refused", func() bool { return len(left()) == 0 })
	coordinator.CloseClientConnections()
	coordinator.Close()
	var last []string
	testkit.Until(t, time.Minute, "the hub alone to refuse", func() bool {
		last = left()
		return len(last) <= 2
	})
	if !about(last, "coordinator, anew", "coordinator, over an open") {
		t.Errorf("who is away refuses: left %q", last)
	}
}

// TestNothingGranted: a thief whose streams are refused in the beginning proves nothing.
func TestNothingGranted(t *testing.T) {
	pool := must(testca.NewPoolAuthority("harbour"))
	j := newJudge(t, pool)
	j.denies.Store(true)
	pair := must(pool.IssueTo(weirpki.Hub, weirpki.Subject{Pool: "harbour", Node: "edge-1"}, 0))
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(j.URL, "https://"))
	_, err := New(t.Context(), Config{
		Pool: "harbour", Node: "edge-1", Hub: pair, PoolRoots: pool.Pool(), Coordinators: []string{"127.0.0.1:" + port},
	})
	if err == nil || !strings.Contains(err.Error(), "a feed of the coordinator") {
		t.Errorf("%v", err)
	}
}

// TestJudged: a request that is the node's own has to be signed. Any other one has to be refused, for what is wrong
// about it.
func TestJudged(t *testing.T) {
	for _, c := range []struct {
		about string
		r     Request
		field string
		wrong bool
	}{
		{"its own", Request{Control: true, Signed: true}, "", false},
		{"its own, refused", Request{Control: true, Said: "node: x"}, "", true},
		{"another's, signed", Request{Signed: true}, "requester", true},
		{"another's, refused", Request{Said: `requester: "x" is not allowed`}, "requester", false},
		{"another's, refused for its key", Request{Said: `public key: "x" is not allowed`}, "requester", true},
	} {
		if r := c.r.judged(c.field); (r.Wrong != "") != c.wrong {
			t.Errorf("%s: %q", c.about, r.Wrong)
		}
	}
}
