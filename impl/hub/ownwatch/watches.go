package ownwatch

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

const (
	// least is how many bytes a watch brings, at least, before the hub opens a stream: a few pods are listed for less.
	least = 16 << 10
	// maxKept bounds the questions of which something is kept. A node asks two.
	maxKept = 8
)

// Config is what Watches are made of. All of it is needed.
type Config struct {
	Node  string
	Cloud http.RoundTripper // as the node
	// Place is where a request to the cloud goes now, and by which credentials: after a change of these it is not equal to
	// what it was.
	Place  func() any
	Clock  clock.WithDelayedExecution
	Logger *slog.Logger
}

// Watches is the way to the cloud of what a node's own certificate asks. All but watches of the node's own pods and of
// its own Node passes as it is.
type Watches struct {
	Config
	count *prometheus.CounterVec

	streaming context.Context // of all streams
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu   sync.Mutex
	of   map[string]*kept // by the key of a question
	over bool             // Run has ended
}

// kept is what is kept of one question.
type kept struct {
	stream *stream // that can be joined; nil: there is none
	begins bool    // the hub is opening one
	listed int64   // bytes that the list of the last one took
	plain  any     // the place that does not compress, or knows no streaming lists; nil: none is known
}

// New makes Watches without streams.
func New(c Config) *Watches {
	w := &Watches{Config: c, of: map[string]*kept{}, count: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_hub_own_watches_total",
		Help: "Watches of this node's own pods and of its own Node, by resource and way: opened, joined, passed, begun " +
			"or moved.",
	}, []string{"resource", "way"})}
	w.streaming, w.stop = context.WithCancel(context.Background())
	return w
}

// Collector has the metrics.
func (w *Watches) Collector() prometheus.Collector { return w.count }

// Run ends all streams when ctx ends.
func (w *Watches) Run(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.stop()
	w.running.Wait()
	return nil
}

// way is that of one request.
type way struct {
	*Watches
	asked *request.Request
}

// For is the way of a request that asks for something.
func (w *Watches) For(asked *request.Request) http.RoundTripper { return way{w, asked} }

// RoundTrip implements http.RoundTripper.
func (w way) RoundTrip(req *http.Request) (*http.Response, error) {
	q := questionOf(req, w.asked, w.Node, w.Clock.Now())
	switch {
	case q == nil:
		return w.pass(req)
	case q.asked.IsTrue("sendInitialEvents"):
		return w.list(q)
	}
	return w.goOn(q)
}

// pass has the cloud answer.
func (w *Watches) pass(req *http.Request) (*http.Response, error) {
	resp, err := w.Cloud.RoundTrip(req)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		w.forget()
	}
	return resp, err
}

// forget has nobody join the streams that there are.
func (w *Watches) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.of {
		k.leave()
	}
}

// leave gives up the stream.
func (k *kept) leave() {
	if k.stream != nil {
		k.stream.retire()
		k.stream = nil
	}
}

// list opens a stream for its client.
func (w *Watches) list(q *question) (*http.Response, error) {
	s, resp, err := w.open(q.req.Context(), q, q.asked.Query, false)
	if s != nil {
		w.counted(q, "opened")
	}
	return resp, err
}

// goOn answers a watch that begins where its client stands.
func (w *Watches) goOn(q *question) (*http.Response, error) {
	if s := w.streamOf(q.key); s != nil {
		if r := s.join(q.req.Context(), q.until, q.from); r != nil {
			w.counted(q, "joined")
			return answer.OK(q.req, s.header.Clone(), r), nil
		}
	}
	resp, err := w.pass(q.req)
	if err != nil {
		return nil, err
	}
	if enc, ok := encodingOf(resp); ok && resp.Header.Get("Content-Encoding") == "" {
		w.counted(q, "passed")
		resp.Body = &passing{
			ReadCloser: resp.Body, events: wire.NewEventReader(resp.Body, enc, wire.Kind{}),
			next: func(version uint64, brought int64) (*reader, bool) { return w.next(q, version, brought) },
		}
	}
	return resp, nil
}

// next is the stream that goes on for a client behind a version; nil: none does yet. If it is worth that, one begins.
func (w *Watches) next(q *question, version uint64, brought int64) (then *reader, begins bool) {
	s := w.streamOf(q.key)
	if s == nil {
		return nil, w.begin(q, wire.FormatVersion(version), brought)
	}
	if then = s.join(q.req.Context(), q.until, version); then != nil {
		w.counted(q, "moved")
	}
	return then, false
}

// streamOf is the stream of a question that goes where requests go now; nil: there is none.
func (w *Watches) streamOf(key string) *stream {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.of[key]
	if k == nil || k.stream == nil {
		return nil
	}
	if k.stream.place != w.Place() {
		k.leave()
	}
	return k.stream
}

// open opens a stream for a question, by a query, and returns the answer for its client. If the cloud gives none, the
// stream is nil, and the answer is the cloud's. The end of ctx ends the waiting for it. begun: the hub wants the
// stream, and no client.
func (w *Watches) open(ctx context.Context, q *question, query url.Values, begun bool) (*stream, *http.Response,
	error) {
	place := w.Place()
	if !w.enter() {
		return nil, nil, context.Canceled
	}
	streaming, cancel := context.WithCancel(w.streaming)
	over := sync.OnceFunc(func() {
		cancel()
		w.running.Done()
	})
	out := q.req.Clone(streaming)
	query = maps.Clone(query)
	query.Set("timeoutSeconds", strconv.Itoa(int(lasts/time.Second)))
	out.URL.RawQuery = query.Encode()
	out.Header.Set("Accept-Encoding", "gzip")
	waits := context.AfterFunc(ctx, cancel)
	resp, err := w.pass(out)
	if err != nil {
		waits()
		over()
		return nil, nil, err
	}
	enc, ok := encodingOf(resp)
	if !ok {
		resp.Body = &closing{ReadCloser: resp.Body, over: over}
		return nil, resp, nil
	}
	if !waits() {
		_ = resp.Body.Close()
		over()
		return nil, nil, ctx.Err()
	}
	s := &stream{
		clock: w.Clock, place: place, packed: resp.Header.Get("Content-Encoding") != "", begun: begun,
		header: resp.Header.Clone(), cancel: cancel, taken: map[*reader]int{}, changed: make(chan struct{}),
	}
	s.header.Del("Content-Encoding")
	body, mine := resp.Body, resp
	if !begun { // it is there before anything comes
		mine = answer.OK(q.req, s.header.Clone(), s.first(q.req.Context(), q.until))
	}
	go func() {
		defer over()
		defer body.Close()
		err := s.run(streaming, body, enc, func(took int64) { w.listed(q, s, took) })
		w.ended(q, s)
		s.finish(err)
		w.Logger.Debug("a watch of the node's own ended", "path", q.asked.Path, "err", err)
	}()
	return s, mine, nil
}

// begin opens a stream for a client that goes on without one, at a version, when that watch has brought so much.
// It reports whether it does.
func (w *Watches) begin(q *question, version string, brought int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keep(q.key)
	if w.over || k == nil || k.begins || k.stream != nil || brought < max(least, k.listed) || k.plain == w.Place() {
		return false
	}
	k.begins = true
	place := w.Place()
	w.running.Go(func() {
		query := q.fixed()
		for name, value := range map[string]string{
			"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": version,
		} {
			query.Set(name, value)
		}
		s, resp, err := w.open(w.streaming, q, query, true)
		switch {
		case err != nil:
			w.Logger.Debug("cannot list what the node watches", "path", q.asked.Path, "err", err)
		case s == nil:
			_ = resp.Body.Close()
			w.Logger.Debug("cannot list what the node watches", "path", q.asked.Path, "status", resp.Status)
		default:
			w.counted(q, "begun")
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if k.begins = false; err == nil && resp.StatusCode == http.StatusUnprocessableEntity {
			k.plain = place // it knows no streaming lists
		}
	})
	return true
}

// keep is what is kept of a question, also from now on; nil: there are too many. mu is held.
func (w *Watches) keep(key string) *kept {
	for other, k := range w.of {
		if len(w.of) < maxKept || w.of[key] != nil {
			break
		}
		if k.stream == nil && !k.begins {
			delete(w.of, other)
		}
	}
	if w.of[key] == nil && len(w.of) < maxKept {
		w.of[key] = &kept{}
	}
	return w.of[key]
}

// listed takes that the list of a stream is complete, and took so many bytes.
func (w *Watches) listed(q *question, s *stream, took int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.keep(q.key)
	if k == nil {
		return
	}
	k.begins, k.listed, k.plain = false, took, nil
	if !s.packed {
		k.plain = s.place
	}
	k.leave()
	k.stream = s
}

// ended takes that a stream is over.
func (w *Watches) ended(q *question, s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.of[q.key]
	if k == nil {
		return
	}
	if k.stream == s {
		k.stream = nil
	}
	if s.begun {
		k.begins = false
	}
}

// enter reports whether another stream may begin, which is then waited for.
func (w *Watches) enter() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.running.Add(1)
	}
	return !w.over
}

func (w *Watches) counted(q *question, way string) {
	w.count.WithLabelValues(q.asked.Resource.Name, way).Inc()
}
