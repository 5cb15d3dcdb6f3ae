package coordinator

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"crypto/tls"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/testkit"
	"github.com/weir-edge/weir/impl/trust"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// often is a clock by which nothing takes long.
type often struct{ clock.RealClock }

func (often) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(time.Millisecond) }

// never is a clock by which nothing is ever due.
type never struct{ clock.RealClock }

func (never) NewTimer(time.Duration) clock.Timer { return clock.RealClock{}.NewTimer(time.Hour) }

// TestToldAtOnce: what a hub hears of the cloud it tells its coordinator at once.
func TestToldAtOnce(t *testing.T) {
	authority := must(pki.NewPoolAuthority("p", time.Now()))
	h := trust.NewDenylist(trust.DenylistConfig{
		Pool: "p", Trusted: func() []*x509.Certificate {
			return []*x509.Certificate{authority.Cert()}
		}, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	shared, done := make(chan uint64, 2), make(chan struct{})
	go func() {
		defer close(done)
		h.Share(ctx, never{},
			func(context.Context, func(context.Context, http.RoundTripper, *url.URL)) { shared <- h.Number() })
	}()
	testkit.Value(t, time.Minute, "the first exchange", shared)
	l, _ := trust.Denylist{Pool: "p"}.Next(time.Now())
	must(h.Take(must(l.Sign(authority))))
	if n := testkit.Value(t, time.Minute, "the one after the change", shared); n != l.Number {
		t.Errorf("shared %d", n)
	}
	cancel()
	<-done
}

// TestCoordinatorTakenBack: a hub and its coordinator come to hold the same denylist. When the coordinator itself is on
// it, what is open to it ends, and nothing is asked of it any more. That of another address goes on.
func TestCoordinatorTakenBack(t *testing.T) {
	now := time.Now()
	authority := must(pki.NewPoolAuthority("p", now))
	trusted := func() []*x509.Certificate { return []*x509.Certificate{authority.Cert()} }
	held := func() *trust.HeldDenylist {
		return trust.NewDenylist(trust.DenylistConfig{Pool: "p", Trusted: trusted, Logger: slog.New(slog.DiscardHandler)})
	}
	cert := must(must(authority.Grant(pki.Must(pki.Coordinator), pki.Subject{Pool: "p", Hosts: []string{"127.0.0.1"}}, now,
		time.Hour)).TLS())
	theirs, mine := held(), held()
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.Handle(contract.DenylistPath, theirs)
	mux.HandleFunc("/stream", func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-req.Context().Done()
	})
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	must(pki.WriteFile(dir, "ca.crt", authority.CertPEM()))
	pair := must(authority.Grant(pki.Must(pki.Hub), pki.Subject{Pool: "p", Node: "a"}, now, time.Hour))
	must(pki.WriteFile(dir, "c.pem", append(pair.KeyPEM, pair.CertPEM...)))
	reload := &uplink.Reloader{}
	c := New(Config{
		Net: &net.Dialer{}, Servers: At(must(url.Parse(server.URL))), Node: "a", Denied: mine, Clock: often{},
		Logger: slog.New(slog.DiscardHandler),
		Roots:  must(reload.Bundle("", dir+"/ca.crt")), Cert: must(reload.Pair("", dir+"/c.pem")),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		mine.Share(ctx, c.Clock, c.Meet)
	}()
	list := trust.Denylist{Pool: "p"}
	next := func(e trust.Denial) []byte {
		e.Before = now.UTC().Truncate(time.Second)
		list, _ = list.Next(time.Now(), e)
		return must(list.Sign(authority))
	}
	must(mine.Take(next(trust.Denial{Node: "b", Replica: "two", Hosts: []string{"127.0.0.2"}})))
	testkit.Until(t, time.Minute, "the coordinator hears of it", func() bool { return theirs.Number() == list.Number })
	stream := func() (*http.Response, error) {
		req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/stream", nil))
		return c.InUse().Transport.RoundTrip(req)
	}
	open, err := stream()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := open.Body.Read(make([]byte, 1))
		_ = open.Body.Close()
		ended <- err
	}()
	must(theirs.Take(next(trust.Denial{Node: "c"})))
	testkit.Until(t, time.Minute, "the hub hears of it", func() bool { return mine.Number() == list.Number })
	select {
	case err := <-ended:
		t.Fatalf("the stream ended for another node: %v", err)
	default:
	}
	must(mine.Take(next(trust.Denial{Node: "d", Replica: "one", Hosts: []string{"127.0.0.1"}})))
	if err := testkit.Value(t, time.Minute, "the end of the stream", ended); err == nil {
		t.Error("the stream goes on")
	}
	before := asked.Load()
	if resp, err := stream(); err == nil {
		_ = resp.Body.Close()
		t.Error("a coordinator whose certificate is taken back is asked")
	}
	if asked.Load() != before || theirs.Number() == list.Number {
		t.Error("a coordinator whose certificate is taken back is told something")
	}
	cancel()
	<-done
	c.Close()
}
