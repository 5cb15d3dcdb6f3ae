package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// watch records a watch. One that goes on from a version that the store does not cover waits for a list: the hub was
// killed before it had written what the client saw, or never had it.
func (r *Recorder) watch(component string, q *request.Request, enc wire.Encoding, resp *http.Response,
	via http.RoundTripper) {
	req := resp.Request
	from, err := wire.ParseVersion(q.Query.Get("resourceVersion"))
	streaming := q.IsTrue("sendInitialEvents")
	f, ok := streamForm(req.Header, enc)
	if err != nil || !ok || from == 0 && !streaming { // the latter begins with a list of which nobody tells the end
		r.count.recorded.WithLabelValues("watch", "no form").Inc()
		return
	}
	shape := shapeOf(q, component, f)
	w := &watching{store: r.store, live: &r.live, shown: r.shown, shape: shape, from: from, streaming: streaming}
	t := newTee(&r.room, resp.Body, true, r.parser(resp, "watch", func(body *intake) error { return w.read(enc, body) }),
		w.close)
	resp.Body = t
	if streaming || r.store.Covers(shape, from) {
		t.begin(w.open)
		return
	}
	r.running.Go(func() {
		if err := r.catchUp(req, component, q, shape, from, via); err != nil {
			r.logger.Debug("a watch is not recorded", "of", naming(q), "component", component, "from", from, "err", err)
			r.count.recorded.WithLabelValues("watch", "behind").Inc()
			t.abandon()
			return
		}
		t.begin(w.open)
	})
}

// catchUp makes the store cover a version by a list in the client's name.
func (r *Recorder) catchUp(req *http.Request, component string, q *request.Request, shape store.Shape, from uint64,
	via http.RoundTripper) error {
	ctx := req.Context()
	bare := shapeOf(q, component, 0)
	if err := r.settled(ctx, bare); err != nil {
		return err
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if r.store.Covers(shape, from) { // by that list, or by what another watch asked for
		return nil
	}
	if r.leftAlone(bare) {
		r.count.leftAlone.Inc()
		return errors.New("the store could not keep the list that the hub asked for lately")
	}
	came, err := r.fetch(ctx, req, component, q, from, via)
	if !came {
		return err
	}
	covers := r.store.Covers(shape, from)
	r.keeps(bare, covers)
	if !covers {
		return fmt.Errorf("the list that the hub asked for is not kept: %w", err)
	}
	return nil
}

// A list that the store cannot keep is fetched again after a pause that grows, whatever the reason was: a selector that
// is too long stays so, and a disk may get room.
const (
	firstPause = time.Minute
	lastPause  = time.Hour
	maxUnkept  = 1024 // lists that are remembered so; beyond that one is forgotten
)

// tried is when a list was fetched for nothing, and how long it is left alone from then on.
type tried struct {
	at    time.Time
	pause time.Duration
}

// leftAlone reports whether a list is not fetched now.
func (r *Recorder) leftAlone(bare store.Shape) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, was := r.unkept[bare]
	return was && r.clock.Since(t.at) < t.pause
}

// keeps notes whether the store has a list that was fetched.
func (r *Recorder) keeps(bare store.Shape, yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, was := r.unkept[bare]
	switch {
	case yes:
		delete(r.unkept, bare)
		return
	case was:
		t.pause = min(2*t.pause, lastPause)
	default:
		t.pause = firstPause
	}
	for other := range r.unkept {
		if len(r.unkept) < maxUnkept {
			break
		}
		delete(r.unkept, other)
	}
	t.at = r.clock.Now()
	r.unkept[bare] = t
}

// fetch asks for the list that a watch goes on from, or a later one, and records it. came reports whether the cloud has
// given it as a whole, so that an error is the store's.
func (r *Recorder) fetch(ctx context.Context, watch *http.Request, component string, q *request.Request, from uint64,
	via http.RoundTripper) (came bool, err error) {
	req := watch.Clone(ctx)
	req.Body, req.ContentLength = nil, 0
	query := maps.Clone(q.Query)
	for _, name := range []string{"watch", "allowWatchBookmarks", "timeout", "timeoutSeconds", "sendInitialEvents"} {
		query.Del(name)
	}
	query.Set("resourceVersion", wire.FormatVersion(from))
	query.Set("resourceVersionMatch", "NotOlderThan")
	req.URL.RawQuery = query.Encode()
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("Accept", listAccept(req.Header))
	req.Header.Set("User-Agent", contract.UserAgent) // no client asks for it
	resp, err := via.RoundTrip(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	enc, ok := encodingOf(resp.Header)
	if resp.StatusCode != http.StatusOK || !ok {
		return false, fmt.Errorf("list: %s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	body, err := plain(resp.Header, resp.Body)
	if err != nil {
		return false, err
	}
	r.count.caughtUp.Inc()
	in := &intake{}
	in.open(body)
	err = r.list(component, q, enc, "", in)
	return ctx.Err() == nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, errLeft), err
}

// listAccept asks for lists of what a watch asks for.
func listAccept(h http.Header) string {
	f := wanted(h)
	media := mediaProtobuf
	if f == store.JSON || f == store.JSONMetadata {
		media = mediaJSON
	}
	if f >= store.ProtobufMetadata {
		media += ";as=" + partial.Kind + "List;g=meta.k8s.io;v=v1"
	}
	return media
}

// watching is one watch being recorded.
type watching struct {
	store     *store.Store
	live      *live
	shown     func(store.Resource, *wire.Object)
	shape     store.Shape
	from      uint64
	streaming bool
	w         *store.Watching
	leave     func() // live
}

func (w *watching) open() (err error) {
	if w.w, err = w.store.Watch(w.shape, wire.Kind{}, w.from, w.streaming); err == nil {
		w.leave = w.live.enter(w.shape)
	}
	return err
}

func (w *watching) close() {
	if w.w != nil {
		w.leave()
		w.w.Close()
	}
}

// read records events to the end of the stream.
func (w *watching) read(enc wire.Encoding, body *intake) error {
	defer func() { w.leave() }()
	events := wire.NewEventReader(body, enc, wire.Kind{})
	for {
		ev, err := events.Next()
		body.letGo()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errLeft):
			return nil // inside a frame: the client has not seen it either, and resumes
		case err != nil:
			w.w.Gap()
			return err
		case ev.Type == wire.Error:
			return nil
		}
		if f, ok := formOf(enc, ev.Kind); !ok || f != w.shape.Form {
			w.w.Gap()
			return errUnkept
		}
		if w.w.Event(ev); ev.Object != nil && w.shape.Form == store.Protobuf {
			w.shown(w.shape.Resource, ev.Object)
		}
	}
}
