package virtual

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// server is a relay that serves watches.
type server struct {
	*relay.Relay
	clock *relayClock
	taps  []*tap
	era   int // of the cloud's, that what it holds is of: what the parts believe is in its history
}

func newServer(l *Loop) *server {
	res, err := relay.ParseResource("endpointslices.v1.discovery.k8s.io")
	if err != nil {
		panic(err)
	}
	c := &relayClock{loop: l}
	r, err := relay.New(relay.Config{Resource: res, Clock: c, Gather: -1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	return &server{Relay: r, clock: c}
}

// tap is a watch that the relay's own handler serves, as a coroutine: it runs when the relay may have changed, until it has sent
// all there is, and then waits in the one timer that it has. So there is one thread, and the handler is the real one.
type tap struct {
	s      *server
	p      *process // serves
	take   func(*wire.Event)
	end    func(error) // told when the relay ends the watch; nil: in order
	cancel context.CancelFunc
	resume func() (struct{}, bool)
	yield  func(struct{}) bool
	body   bytes.Buffer
	events *wire.EventReader
	code   int
	over   bool
	wake   int // grows with each wait
}

// watch serves a watch to take until end is told or close is called. A relay that holds something asks in its history.
func (s *server) watch(p *process, query url.Values, as *relay.History, progress bool, take func(*wire.Event), end func(error)) *tap {
	res := s.Resource()
	ctx, cancel := context.WithCancel(context.Background())
	query.Set("watch", "1")
	query.Set("allowWatchBookmarks", "true")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, res.Path()+"/"+res.Resource+"?"+query.Encode(), nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	if as != nil {
		req.Header.Set(relay.HistoryHeader, as.String())
	}
	if progress {
		req.Header.Set(relay.ProgressHeader, "1")
	}
	t := &tap{s: s, p: p, take: take, end: end, cancel: cancel}
	t.events = wire.NewEventReader(&t.body, res.Encoding(), res.WireKind())
	t.resume, _ = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		s.ServeHTTP(t, req)
	})
	s.taps = append(s.taps, t)
	t.run()
	return t
}

// changed lets all watches look at the relay.
func (s *server) changed() {
	for _, t := range slices.Clone(s.taps) {
		t.run()
	}
}

// run lets the handler send what it has, and hands that on.
func (t *tap) run() {
	if t.over {
		return
	}
	t.wake++
	t.s.clock.serving = t
	_, waits := t.resume()
	t.s.clock.serving = nil
	if !waits {
		t.forget()
	}
	for _, ev := range t.sent() {
		switch {
		case t.end == nil: // closed meanwhile
			return
		case ev.Type == wire.Error:
			t.finish(statusError(ev.Status.Code))
			return
		}
		t.take(ev)
	}
	switch {
	case waits:
	case t.code != http.StatusOK:
		t.finish(statusError(t.code))
	default:
		t.finish(nil)
	}
}

// sent is what the handler has sent since it was last asked.
func (t *tap) sent() (events []*wire.Event) {
	for t.code == http.StatusOK {
		ev, err := t.events.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			panic(err)
		}
		events = append(events, ev)
	}
	return events
}

// wait is called by the handler. It tells whether there may be something to do, or else that the client is gone.
func (t *tap) wait(d time.Duration) bool {
	if t.over {
		return false
	}
	wake := t.wake
	t.p.after(d, func() {
		if t.wake == wake {
			t.run()
		}
	})
	t.yield(struct{}{})
	return !t.over
}

func (t *tap) finish(err error) {
	if end := t.end; end != nil {
		t.close()
		end(err)
	}
}

// close is the client's end: nothing is told any more.
func (t *tap) close() {
	t.end = nil
	if t.over {
		return
	}
	t.forget()
	t.cancel()
	t.resume() // the handler returns
}

func (t *tap) forget() {
	t.over = true
	if i := slices.Index(t.s.taps, t); i >= 0 {
		t.s.taps = slices.Delete(t.s.taps, i, i+1)
	}
}

// Header, Write, WriteHeader and Flush make t an http.ResponseWriter.
func (t *tap) Header() http.Header         { return http.Header{} }
func (t *tap) WriteHeader(code int)        { t.code = code }
func (t *tap) Flush()                      {}
func (t *tap) Write(p []byte) (int, error) { return t.body.Write(p) }

// statusError is an answer other than 200.
type statusError int

func (e statusError) Error() string { return http.StatusText(int(e)) }

var errGone = statusError(http.StatusGone)

// list is what the relay's handler answers to a list: version 0 if it has none.
func (s *server) list() (version uint64, items []*wire.Object) {
	res := s.Resource()
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, res.Path()+"/"+res.Resource, nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	t := &tap{s: s}
	s.ServeHTTP(t, req)
	if t.code != http.StatusOK {
		return 0, nil
	}
	meta, err := wire.ReadList(&t.body, res.Encoding(), res.WireKind(), func(o *wire.Object) error {
		items = append(items, o)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return meta.Version, items
}
