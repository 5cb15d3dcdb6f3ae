package door

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
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
