package uplink

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestCalm: a heartbeat that is not needed in time goes over the connection that is open. If nothing comes over that,
// or no good answer, it goes over one of its own, as others do.
func TestCalm(t *testing.T) {
	for name, c := range map[string]struct {
		calm              bool
		node              int // what is answered over the node's connection; 0: nothing
		asked, handshakes int32
	}{
		"in order":         {true, http.StatusOK, 1, 0},
		"refused":          {true, http.StatusConflict, 1, 0},
		"cannot be served": {true, http.StatusServiceUnavailable, 1, 1},
		"dead":             {true, 0, 1, 1},
		"needed":           {false, http.StatusOK, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var asked, handshakes atomic.Int32
			node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if asked.Add(1); c.node == 0 {
					<-req.Context().Done()
					return
				}
				w.WriteHeader(c.node)
			}))
			beats := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			beats.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					handshakes.Add(1)
				}
			}
			address := map[Class]*url.URL{}
			for class, srv := range map[Class]*httptest.Server{ClassNode: node, ClassHeartbeat: beats} {
				srv.EnableHTTP2 = true
				srv.StartTLS()
				defer srv.Close()
				at, err := url.Parse(srv.URL)
				if err != nil {
					t.Fatal(err)
				}
				address[class] = at
			}
			clk := clocktesting.NewFakeClock(time.Now())
			at := &server{}
			at.address.Store(&address)
			at.Checker = NewChecker(CheckerConfig{
				Name: "cloud", Clock: clk, Logger: slog.New(slog.DiscardHandler), Changed: func() {},
				Probe: func(context.Context) error { return nil },
			})
			to := func(class Class) *door {
				d := &door{
					class: class, candidates: func() []*server { return []*server{at} },
					transport: NewTransport(TransportConfig{Dialer: &Dialer{
						Net: &net.Dialer{}, Meter: &Meter{}, TLS: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}},
					}}.Build),
				}
				t.Cleanup(d.transport.Close)
				return d
			}
			u := &Urgent{door: to(ClassHeartbeat), calm: to(ClassNode), clock: clk}
			ended := make(chan error, 1)
			var a *Answer
			go func() {
				var err error
				a, err = u.Send(t.Context(), Message{Method: http.MethodPatch, URI: "/lease", Header: http.Header{}, Calm: c.calm})
				ended <- err
			}()
			for over := false; !over; {
				select {
				case err := <-ended:
					if over = true; err != nil {
						t.Fatal(err)
					}
				case <-time.After(time.Millisecond):
					if c.node == 0 && asked.Load() > 0 && clk.HasWaiters() {
						clk.Step(time.Minute)
					}
				}
			}
			if asked.Load() != c.asked || handshakes.Load() != c.handshakes || a.Code >= http.StatusInternalServerError {
				t.Errorf("answered %d: asked %d times over the node's connection, and %d handshakes", a.Code, asked.Load(),
					handshakes.Load())
			}
		})
	}
}
