package uplink

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestIdleConnection: a connection on which nothing runs ends after the time of its class, and one on which a stream is
// open stays.
func TestIdleConnection(t *testing.T) {
	ended := make(chan string, 10)
	release := make(chan struct{})
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watch" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-release
		}
	}))
	srv.EnableHTTP2 = true
	srv.Config.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			ended <- c.RemoteAddr().String()
		}
	}
	srv.StartTLS()
	defer srv.Close()
	open := func(idle time.Duration, path string) (*http.Transport, *http.Response) {
		tr := TransportConfig{
			idle: idle, Dialer: &Dialer{
				Net: &net.Dialer{}, Meter: &Meter{}, TLS: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}},
			},
		}.Build()
		resp, err := (&http.Client{Transport: tr}).Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		return tr, resp
	}
	watching, stream := open(10*time.Millisecond, "/watch")
	defer watching.CloseIdleConnections()
	defer stream.Body.Close()
	_, resp := open(10*time.Millisecond, "/")
	_ = resp.Body.Close()
	<-ended // of the second: the test ends here if none does
	select {
	case a := <-ended:
		t.Errorf("the connection of %s ended, on which a stream is open", a)
	default:
	}
	close(release)
	<-ended
}

// TestLateReview: a question that is not answered in time is asked once more, over another connection, with all that it
// said. One that is answered late both times has failed.
func TestLateReview(t *testing.T) {
	for _, silent := range []int32{0, 1, 2} { // so many connections are dead
		var connections, asked atomic.Int32
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			if asked.Add(1); string(body) != "what?" {
				t.Errorf("asked %q", body)
			}
			if connections.Load() <= silent {
				<-req.Context().Done()
			}
		}))
		srv.EnableHTTP2 = true
		srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				connections.Add(1)
			}
		}
		srv.StartTLS()
		address, err := url.Parse(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		at := &server{}
		at.address.Store(&map[Class]*url.URL{ClassNode: address})
		at.Checker = NewChecker(CheckerConfig{
			Name: address.Host, Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler), Changed: func() {},
			Probe: func(context.Context) error { return nil },
		})
		d := again{&door{
			class: ClassNode, candidates: func() []*server { return []*server{at} },
			transport: NewTransport(TransportConfig{
				late: 200 * time.Millisecond, Dialer: &Dialer{
					Net: &net.Dialer{}, Meter: &Meter{}, TLS: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}},
				},
			}.Build),
		}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://cloud/x", strings.NewReader("what?"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := d.RoundTrip(req)
		if err == nil {
			resp.Body.Close()
		}
		if want := min(silent+1, 2); (err == nil) != (silent < 2) || asked.Load() != want || connections.Load() != want {
			t.Errorf("%d are silent: %v, asked %d times over %d connections", silent, err, asked.Load(), connections.Load())
		}
		d.transport.Close()
		srv.CloseClientConnections()
		srv.Close()
	}
}

// TestIdleTimes: which connections end by themselves, so that a hub that follows keeps two.
func TestIdleTimes(t *testing.T) {
	k := NewCloud(CloudConfig{
		Servers: map[Class][]*url.URL{ClassControl: {{Scheme: "https", Host: "a.example"}}}, Policy: testPolicy,
		Roots: &Bundle{}, Node: &Pair{}, Hub: &Pair{}, Forward: &Pair{}, Clock: clocktesting.NewFakeClock(time.Now()),
		Logger: slog.New(slog.DiscardHandler),
	})
	for key, want := range map[doorKey]time.Duration{
		{ClassControl, AsHub, overHTTP2}:         serverIdle,
		{ClassNode, AsNode, overHTTP2}:           0,
		{ClassNode, AsCaller, overHTTP2}:         serverIdle,
		{ClassNode, AsCaller, overSilent}:        serverIdle,
		{ClassPool, AsHub, overHTTP2}:            poolIdle,
		{ClassHeartbeat, AsNode, overHTTP2}:      serverIdle,
		{ClassHeartbeat, AsForwarder, overHTTP2}: serverIdle,
	} {
		if got := k.doors[key].transport.current.Load().IdleConnTimeout; got != want {
			t.Errorf("%+v: %v, want %v", key, got, want)
		}
	}
}
