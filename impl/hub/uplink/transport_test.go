package uplink

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

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

// TestIdleTimes: which connections end by themselves, so that a hub that follows keeps two.
func TestIdleTimes(t *testing.T) {
	k := NewCloud(CloudConfig{
		Servers: map[Class][]*url.URL{ClassControl: {{Scheme: "https", Host: "a.example"}}}, Policy: testPolicy,
		Roots: &Bundle{}, Node: &Pair{}, Hub: &Pair{}, Forward: &Pair{}, Clock: clocktesting.NewFakeClock(time.Now()),
		Logger: slog.New(slog.DiscardHandler),
	})
	for key, want := range map[doorKey]time.Duration{
		{ClassControl, AsHub, overHTTP2}:         0,
		{ClassNode, AsNode, overHTTP2}:           0,
		{ClassNode, AsCaller, overHTTP2}:         serverIdle,
		{ClassPool, AsHub, overHTTP2}:            poolIdle,
		{ClassHeartbeat, AsNode, overHTTP2}:      serverIdle,
		{ClassHeartbeat, AsForwarder, overHTTP2}: serverIdle,
	} {
		if got := k.doors[key].transport.current.Load().IdleConnTimeout; got != want {
			t.Errorf("%+v: %v, want %v", key, got, want)
		}
	}
}
