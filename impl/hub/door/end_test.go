package door

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/await"
)

// TestEndsInOrder: a server that is told to end waits for what it cuts off: the stream of a watch ends behind a whole
// answer, so that client-go goes on where it stands, and who ends the hub finds recorded what the client has seen.
func TestEndsInOrder(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	cut, recorded, served := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		served <- Serve(ctx, l, nil, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-req.Context().Done()
			close(cut)
			<-recorded
		}), nil, slog.New(slog.DiscardHandler))
	}()
	resp, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	end()
	<-cut
	select {
	case err := <-served:
		t.Fatalf("the server ended (%v) while an answer was recorded", err)
	case <-time.After(drain / 10):
	}
	close(recorded)
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Errorf("the stream broke: %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// accepts tells each time that the server is done with what it accepted before.
type accepts struct {
	net.Listener
	again chan struct{}
}

func (l accepts) Accept() (net.Conn, error) {
	l.again <- struct{}{}
	return l.Listener.Accept()
}

// TestAnswersWhomItAccepted: a server that is told to end answers the first request of a connection that it has
// accepted, and does not wait for a connection on which nothing comes.
func TestAnswersWhomItAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		patience time.Duration
		asks     bool
	}{"a request": {time.Hour, true}, "nothing": {time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			below, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			l := accepts{below, make(chan struct{}, 8)}
			ctx, end := context.WithCancel(t.Context())
			defer end()
			served := make(chan error, 1)
			go func() {
				served <- serve(ctx, l, nil, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil,
					slog.New(slog.DiscardHandler), newArrivals(c.patience))
			}()
			<-l.again
			conn, err := net.Dial("tcp", below.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			<-l.again
			end()
			await.Until(t, time.Minute, "the listener to be closed", func() bool {
				_, err := below.Accept()
				return errors.Is(err, net.ErrClosed)
			})
			if c.asks {
				if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: hub\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("no answer: %v", err)
				}
				_ = resp.Body.Close()
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}
