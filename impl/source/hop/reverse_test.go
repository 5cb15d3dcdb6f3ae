package hop

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a reader to which somebody connects who serves.
type bed struct {
	lot    Lot
	reader *httptest.Server
	served *Listener
	asked  atomic.Int32 // requests to LinePath
	refuse atomic.Bool
	counts context.Context
}

func newBed(t *testing.T) (b *bed, leave context.CancelFunc) {
	t.Helper()
	b = &bed{}
	b.counts, leave = context.WithCancel(context.Background())
	b.reader = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b.asked.Add(1)
		if b.refuse.Load() {
			http.Error(w, "not for you", http.StatusForbidden)
			return
		}
		b.lot.Admit(w, req, "edge-1")
	}))
	b.served = NewListener(func(ctx context.Context) (net.Conn, context.Context, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.reader.Listener.Addr().String())
		return conn, b.counts, err
	}, clock.RealClock{}, slog.New(slog.DiscardHandler))
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			fmt.Fprint(w, "served ", req.URL.Path)
		}),
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(b.served) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
		b.lot.Close()
		b.reader.Close()
		leave()
	})
	return b, leave
}

// ask reads over the connection that waits.
func (b *bed) ask(t *testing.T, name string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := b.lot.Take(ctx, name)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "GET /x HTTP/1.0\r\n\r\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// TestReverse: who connects serves over the connection, then opens the next one.
func TestReverse(t *testing.T) {
	b, _ := newBed(t)
	for range 3 {
		if answer, err := b.ask(t, "edge-1"); err != nil || !strings.HasSuffix(answer, "served /x") {
			t.Fatalf("%q, %v", answer, err)
		}
	}
}

// TestNobodyElse: what one has opened is not taken for another's.
func TestNobodyElse(t *testing.T) {
	b, _ := newBed(t)
	testkit.Until(t, time.Minute, "one to wait", b.waits)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if conn, err := b.lot.Take(ctx, "edge-2"); err == nil || !strings.Contains(err.Error(), "edge-2 has not connected") {
		t.Errorf("%v, %v", conn, err)
	}
}

func (b *bed) waits() bool {
	b.lot.mu.Lock()
	defer b.lot.mu.Unlock()
	return b.lot.waiting["edge-1"] != nil
}

// TestComeAgain: a connection that ends while it waits is opened again, and a refused one as well, though not at once.
func TestComeAgain(t *testing.T) {
	b, leave := newBed(t)
	testkit.Until(t, time.Minute, "one to wait", b.waits)
	b.reader.CloseClientConnections() // not those that wait
	b.lot.mu.Lock()
	ended := b.lot.waiting["edge-1"]
	b.lot.mu.Unlock()
	_ = ended.Close()
	testkit.Until(t, time.Minute, "the next one", func() bool {
		b.lot.mu.Lock()
		defer b.lot.mu.Unlock()
		return b.lot.waiting["edge-1"] != ended
	})
	if answer, err := b.ask(t, "edge-1"); err != nil || !strings.HasSuffix(answer, "served /x") {
		t.Fatalf("%q, %v", answer, err)
	}
	b.refuse.Store(true)
	before := b.asked.Load()
	leave() // the reader is another one
	testkit.Until(t, time.Minute, "it to come again", func() bool { return b.asked.Load() > before })
	if n := b.asked.Load() - before; n > 2 {
		t.Errorf("it came %d times at once", n)
	}
}

// TestWrongRequests: what is no upgrade is refused, and takes no place.
func TestWrongRequests(t *testing.T) {
	var lot Lot
	for name, req := range map[string]*http.Request{
		"GET":        httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil),
		"no upgrade": httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil),
	} {
		if name == "GET" {
			req.Header.Set("Upgrade", protocol)
		}
		w := httptest.NewRecorder()
		lot.Admit(w, req, "a")
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
	if len(lot.waiting) > 0 {
		t.Error("something waits")
	}
}

// TestClosed: a closed lot keeps nobody, and who waits for a connection hears of it.
func TestClosed(t *testing.T) {
	var lot Lot
	end := make(chan error, 1)
	go func() {
		_, err := lot.Take(t.Context(), "a")
		end <- err
	}()
	lot.Close()
	if err := <-end; err == nil {
		t.Error("taken")
	}
	here, there := net.Pipe()
	defer here.Close()
	lot.put("a", there)
	if _, err := here.Write([]byte("x")); err == nil {
		t.Error("it is open")
	}
}
