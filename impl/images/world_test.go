package images

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/exchange"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// world is a pool in memory, for fake time: hubs and their stores, and one desk.
type world struct {
	*testing.T
	desk  *exchange.Images
	nodes map[string]*hub
	down  atomic.Bool // the desk
	away  atomic.Bool // the cloud
	cut   atomic.Bool // the cloud is away, and no hub knows that before it asks
}

// hub is one of them.
type hub struct {
	layout
	world  *world
	name   string
	mirror *Mirror
	shown  http.Handler
	off    atomic.Bool
	denied atomic.Bool // the pool shares nothing
}

func newWorld(t *testing.T, names ...string) *world {
	w := &world{T: t, desk: &exchange.Images{Clock: clock.RealClock{}}, nodes: map[string]*hub{}}
	for _, name := range names {
		w.add(name)
	}
	return w
}

func (w *world) add(name string) *hub {
	h := &hub{layout: newLayout(w.T), world: w, name: name}
	h.mirror = New(Config{
		Node: name, Store: h.Store, Pool: h, Away: func() bool { return w.away.Load() }, Metrics: NewMetrics(),
		Left: func(context.Context) bool {
			if w.cut.Load() {
				sleep(knownAfter)
				w.away.Store(true)
			}
			return w.away.Load()
		},
		Clock: clock.RealClock{}, Logger: slog.New(slog.DiscardHandler),
		Allowed: func(registry string) bool { return registry != "secret.example.com" && !h.denied.Load() },
		Off:     func() bool { return h.denied.Load() },
	})
	h.shown = &Shown{
		Store: h.Store, Pulling: h.mirror.Pulling, Off: func() bool { return h.denied.Load() },
		Caller: func(*http.Request) string { return "member" },
		Clock:  clock.RealClock{}, Bytes: h.mirror.Metrics.Bytes,
	}
	w.nodes[name] = h
	return h
}

// run has hubs say what they have, until ctx ends.
func (w *world) run(ctx context.Context) (wait func()) {
	var all sync.WaitGroup
	for _, h := range w.nodes {
		all.Go(func() { _ = h.mirror.Run(ctx) })
	}
	return all.Wait
}

// Ask implements Pool.
func (h *hub) Ask(_ context.Context, a exchange.ImagesAsk) (exchange.ImagesAnswer, error) {
	if h.world.down.Load() || h.off.Load() {
		return exchange.ImagesAnswer{}, errors.New("no desk answers")
	}
	a.Address = "10.0.0.1:" + strconv.Itoa(10000+len(h.name)) // it is known by its name here
	return h.world.desk.Exchange(h.name, a)
}

// Open implements Pool.
func (h *hub) Open(ctx context.Context, from exchange.Holder, method string, d exchange.Digest,
	part string) (*http.Response, error) {
	other := h.world.nodes[from.Node]
	if other == nil || other.off.Load() {
		return nil, errors.New("connection refused")
	}
	req := httptest.NewRequestWithContext(ctx, method, contract.ImagesBlobsPath+d.String(), nil)
	if part != "" {
		req.Header.Set("Range", part)
	}
	return serve(other.shown, req), nil
}

// get asks the mirror of a hub. ended is an answer that broke off.
func (h *hub) get(method, path, part string) (code int, header http.Header, body []byte, ended error) {
	req := httptest.NewRequestWithContext(h.world.Context(), method, path, nil)
	if part != "" {
		req.Header.Set("Range", part)
	}
	req.Header.Set("Accept", ociIndex+", */*")
	resp := serve(h.mirror, req)
	defer resp.Body.Close()
	body, ended = io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, body, ended
}

// counts is a counter of a hub's requests.
func (h *hub) counts(outcome string) float64 {
	return testutil.ToFloat64(h.mirror.Metrics.requests.WithLabelValues(outcome))
}

// serve answers a request over a connection in memory, which works in fake time.
func serve(h http.Handler, req *http.Request) *http.Response {
	r, out := io.Pipe()
	w := &pipe{header: http.Header{}, out: out, began: make(chan struct{})}
	go func() {
		defer func() {
			end := io.EOF
			if recover() != nil {
				end = io.ErrUnexpectedEOF
			}
			w.WriteHeader(http.StatusOK)
			_ = out.CloseWithError(end)
		}()
		h.ServeHTTP(w, req)
	}()
	select {
	case <-w.began:
	case <-req.Context().Done():
		<-w.began
	}
	stop := context.AfterFunc(req.Context(), func() { _ = out.CloseWithError(req.Context().Err()) })
	length, err := strconv.ParseInt(w.header.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	return &http.Response{
		StatusCode: w.code, Status: http.StatusText(w.code), Header: w.header, ContentLength: length,
		Body: &reading{r, stop},
	}
}

type reading struct {
	*io.PipeReader
	stop func() bool
}

func (r *reading) Close() error {
	r.stop()
	return r.PipeReader.Close()
}

type pipe struct {
	header http.Header
	out    *io.PipeWriter
	once   sync.Once
	code   int
	began  chan struct{}
}

func (p *pipe) Header() http.Header { return p.header }

func (p *pipe) WriteHeader(code int) {
	p.once.Do(func() {
		p.code = code
		close(p.began)
	})
}

func (p *pipe) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.out.Write(b)
}

// knownAfter is after what time a hub knows that the cloud is away.
const knownAfter = 9 * time.Second

// sleep is a word for tests in fake time.
func sleep(d time.Duration) { time.Sleep(d) }

func sum(s string) [sha256.Size]byte { return sha256.Sum256([]byte(s)) }

// remove removes a blob, as garbage collection does.
func remove(t *testing.T, h *hub, d exchange.Digest) {
	t.Helper()
	if err := os.Remove(filepath.Join(h.blobs(), d.Hex())); err != nil {
		t.Fatal(err)
	}
}
