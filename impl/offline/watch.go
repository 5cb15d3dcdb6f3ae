package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// watch records a watch. One that goes on from a version that the store does not cover waits for a list: the hub was killed before it
// had written what the client saw, or never had it.
func (r *Recorder) watch(component string, q *request.Request, enc wire.Encoding, resp *http.Response, via http.RoundTripper) {
	req := resp.Request
	from, err := wire.ParseVersion(q.Query.Get("resourceVersion"))
	streaming := q.IsTrue("sendInitialEvents")
	f, ok := streamForm(req.Header, enc)
	if err != nil || !ok || from == 0 && !streaming { // the latter begins with a list of which nobody tells the end
		r.count.recorded.WithLabelValues("watch", "no form").Inc()
		return
	}
	shape := shapeOf(q, component, f)
	w := &watching{store: r.store, shape: shape, from: from, streaming: streaming}
	t := newTee(&r.room, resp.Body, true, r.parser(resp, "watch", func(body *intake) error { return w.read(enc, body) }), w.close)
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
func (r *Recorder) catchUp(req *http.Request, component string, q *request.Request, shape store.Shape, from uint64, via http.RoundTripper) error {
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
	if err := r.fetch(ctx, req, component, q, from, via); err != nil {
		return err
	}
	if !r.store.Covers(shape, from) {
		return errors.New("the list that the hub asked for does not reach it")
	}
	return nil
}

// fetch asks for the list that a watch goes on from, or a later one, and records it.
func (r *Recorder) fetch(ctx context.Context, watch *http.Request, component string, q *request.Request, from uint64, via http.RoundTripper) error {
	req := watch.Clone(ctx)
	req.Body, req.ContentLength = nil, 0
	query := maps.Clone(q.Query)
	for _, name := range []string{"watch", "allowWatchBookmarks", "timeoutSeconds", "sendInitialEvents"} {
		query.Del(name)
	}
	query.Set("resourceVersion", wire.FormatVersion(from))
	query.Set("resourceVersionMatch", "NotOlderThan")
	req.URL.RawQuery = query.Encode()
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("Accept", listAccept(req.Header))
	resp, err := via.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	enc, ok := encodingOf(resp.Header)
	if resp.StatusCode != http.StatusOK || !ok {
		return fmt.Errorf("list: %s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	body, err := plain(resp.Header, resp.Body)
	if err != nil {
		return err
	}
	r.count.caughtUp.Inc()
	in := &intake{}
	in.open(body)
	return r.list(component, q, enc, "", in)
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
	shape     store.Shape
	from      uint64
	streaming bool
	w         *store.Watching
}

func (w *watching) open() (err error) {
	w.w, err = w.store.Watch(w.shape, wire.Kind{}, w.from, w.streaming)
	return err
}

func (w *watching) close() {
	if w.w != nil {
		w.w.Close()
	}
}

// read records events to the end of the stream.
func (w *watching) read(enc wire.Encoding, body *intake) error {
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
		w.w.Event(ev)
	}
}
