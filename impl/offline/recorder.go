package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// errUnkept is why an answer is not kept although nothing is wrong with it.
var errUnkept = errors.New("its form is not kept")

// catchingUp is how many lists the hub asks for at once in the name of clients.
const catchingUp = 2

// Recorder keeps what the cloud answers to local clients. It looks at bytes that pass, and never changes or delays
// them.
type Recorder struct {
	store  *store.Store
	clock  clock.PassiveClock
	logger *slog.Logger
	count  *counters
	shown  func(store.Resource, *wire.Object)
	pages  *pages

	live    live
	room    room
	slots   chan struct{} // catching up
	running sync.WaitGroup
	mu      sync.Mutex
	busy    map[store.Shape]*listed // lists under way, by shape without its form
	unkept  map[store.Shape]tried   // lists that the hub has fetched and the store does not have, likewise
}

// listed tells when a list has been recorded.
type listed struct {
	n    int
	done chan struct{}
}

func newRecorder(s *store.Store, c clock.PassiveClock, logger *slog.Logger, count *counters,
	shown func(store.Resource, *wire.Object)) *Recorder {
	return &Recorder{
		store: s, clock: c, logger: logger, count: count, shown: shown, pages: newPages(c), room: room{max: MaxRecording},
		slots: make(chan struct{}, catchingUp), busy: map[store.Shape]*listed{}, unkept: map[store.Shape]tried{},
		live: live{open: map[store.Shape]int{}},
	}
}

// Wait returns when nothing runs any more. The requests that were observed must have ended.
func (r *Recorder) Wait() {
	r.running.Wait()
	r.pages.close()
}

// parser runs what reads a body, and tells what became of it.
func (r *Recorder) parser(resp *http.Response, verb string, parse func(*intake) error) func(io.Reader, *intake) {
	header, path := resp.Header, resp.Request.URL.Path
	return func(body io.Reader, in *intake) {
		err := func() (err error) {
			defer func() {
				if p := recover(); p != nil { // it must not break the client's stream
					err = fmt.Errorf("panic: %v", p)
					r.logger.Error("an answer could not be recorded", "path", path, "err", err)
				}
			}()
			if body, err = plain(header, body); err != nil {
				return err
			}
			in.open(body)
			return parse(in)
		}()
		switch {
		case err == nil:
			r.count.recorded.WithLabelValues(verb, "kept").Inc()
		case errors.Is(err, errUnkept):
			r.count.recorded.WithLabelValues(verb, "no form").Inc()
		case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errLeft):
			r.count.recorded.WithLabelValues(verb, "broken off").Inc()
		default:
			r.count.recorded.WithLabelValues(verb, "failed").Inc()
			r.logger.Debug("an answer is not recorded", "verb", verb, "path", path, "err", err)
		}
	}
}

// one reads a body that is one object.
func one(enc wire.Encoding, body io.Reader) (wire.Kind, *wire.Object, error) {
	b, err := io.ReadAll(io.LimitReader(body, wire.MaxObject+1))
	switch {
	case err != nil:
		return wire.Kind{}, nil, err
	case len(b) > wire.MaxObject:
		return wire.Kind{}, nil, fmt.Errorf("an object of more than %d bytes", wire.MaxObject)
	}
	return wire.ParseBody(enc, b)
}

func (r *Recorder) got(component string, q *request.Request, enc wire.Encoding, body io.Reader) error {
	kind, o, err := one(enc, body)
	f, ok := formOf(enc, kind)
	switch {
	case err == nil && !ok, err != nil && kind.Kind == "Table":
		return errUnkept
	case err != nil:
		return err
	case o.Version == 0 || o.Name != q.Name || o.Namespace != q.In():
		return errUnkept // of an aggregated API, or no object of its own
	}
	return r.store.Got(component, q.Resource, f, kind, o)
}

// notFound takes a 404 if it is about the object, not about the path.
func (r *Recorder) notFound(component string, q *request.Request, h http.Header, enc wire.Encoding,
	body io.Reader) error {
	b, err := io.ReadAll(io.LimitReader(body, 64<<10))
	if err != nil {
		return err
	}
	var s metav1.Status
	if enc == wire.JSON {
		err = json.Unmarshal(b, &s)
	} else {
		var raw []byte
		if _, raw, err = wire.SplitEnvelope(b); err == nil {
			err = s.Unmarshal(raw)
		}
	}
	if err != nil {
		return err
	}
	if s.Reason != metav1.StatusReasonNotFound || s.Details == nil || s.Details.Name != q.Name ||
		s.Details.Kind != q.Resource.Name || s.Details.Group != q.Resource.Group {
		return errUnkept
	}
	return r.store.NotFound(component, q.Resource, wanted(h), KeyOf(q))
}

func (r *Recorder) written(q *request.Request, enc wire.Encoding, body io.Reader) error {
	kind, o, err := one(enc, body)
	f, ok := formOf(enc, kind)
	switch {
	case err != nil || !ok, o.Version == 0:
		return errUnkept // a Status, as a deletion may answer
	case q.Name != "" && o.Name != q.Name, o.Namespace != q.In():
		return errUnkept
	}
	r.store.Written(q.Resource, f, kind, o)
	return nil
}

// list takes a list, or one page of it.
func (r *Recorder) list(component string, q *request.Request, enc wire.Encoding, token string, body *intake) error {
	bare := shapeOf(q, component, 0)
	var l *paged
	if token != "" {
		if l = r.pages.take(pageKey{bare, token}); l == nil {
			return errUnkept // its first page was not seen
		}
	}
	open := func(kind wire.Kind) error {
		f, ok := formOf(enc, kind)
		switch {
		case !ok || l != nil && l.kind != kind:
			return errUnkept
		case l != nil:
			return nil
		}
		listing, err := r.store.List(shapeOf(q, component, f), kind)
		if err == nil {
			l = &paged{listing: listing, kind: kind}
		}
		return err
	}
	kind, meta, err := wire.ReadAnyList(body, enc, func(kind wire.Kind, o *wire.Object) error {
		body.letGo()
		if o.Version == 0 {
			return errUnkept // of an aggregated API
		}
		if err := open(kind); err != nil {
			return err
		}
		l.listing.Add(o)
		return nil
	})
	if err == nil {
		err = open(kind)
	}
	switch {
	case l == nil:
		return err
	case err != nil && token != "": // the client may ask for the page again
		r.pages.put(pageKey{bare, token}, l)
		return err
	case err != nil:
		l.listing.Close()
		return err
	case l.version != 0 && meta.Version != l.version: // a token that had expired: the rest is of another time
		l.listing.Close()
		return errUnkept
	}
	l.version = meta.Version
	if meta.Continue != "" {
		r.pages.put(pageKey{bare, meta.Continue}, l)
		return nil
	}
	l.listing.Declares(meta.Kind)
	l.listing.Commit(meta.Version)
	l.listing.Close()
	return nil
}

// begin notes that a list is being recorded.
func (r *Recorder) begin(bare store.Shape) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.busy[bare]
	if l == nil {
		l = &listed{done: make(chan struct{})}
		r.busy[bare] = l
	}
	l.n++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if l.n--; l.n == 0 {
			delete(r.busy, bare)
			close(l.done)
		}
	}
}

// settled waits until no list of a shape is being recorded.
func (r *Recorder) settled(ctx context.Context, bare store.Shape) error {
	r.mu.Lock()
	l := r.busy[bare]
	r.mu.Unlock()
	if l == nil {
		return ctx.Err()
	}
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Watches reports whether a watch of the same component brings the object that a get asks for, as protobuf: then the
// store has what that client knows already, or will in a moment.
func (r *Recorder) Watches(component string, req *http.Request, q *request.Request) bool {
	return ofObjects(q) && q.Verb == "get" && q.Subresource == "" && len(q.Query) == 0 &&
		wanted(req.Header) == store.Protobuf && r.watched(component, q)
}

// watched reports whether a watch of a component that is open now brings an object as protobuf.
func (r *Recorder) watched(component string, q *request.Request) bool {
	return slices.ContainsFunc(r.store.Holders(q.Resource, KeyOf(q)), func(s store.Shape) bool {
		return s.Component == component && s.Form == store.Protobuf && r.live.has(s)
	})
}

// Held is the object that a request is about, as the cloud last showed it, if a watch of the same component brings it
// as protobuf; else nil.
func (r *Recorder) Held(component string, q *request.Request) *wire.Object {
	if !ofObjects(q) || !r.watched(component, q) {
		return nil
	}
	k := KeyOf(q)
	a := r.store.Get(component, q.Resource, store.Protobuf, k)
	if a.Knowledge != store.Known || a.Form != store.Protobuf ||
		a.Object.Version != r.store.Version(q.Resource, k, store.Protobuf) { // of a history that is over
		return nil
	}
	return a.Object
}
