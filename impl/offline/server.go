package offline

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
)

// shortWatch is the time within which a watch does not end because the cloud is back: client-go lists after one that
// ends within a second, and has shown nothing (VeryShortWatchError of its reflector). It may count from when it has
// taken in what it was shown first.
const shortWatch = 2 * time.Second

// Overlay is what a node has written and the cloud does not have yet. Its methods may be called by many.
type Overlay interface {
	// Overlay gives an object of the store with it.
	Overlay(store.Resource, store.Form, *wire.Object) *wire.Object
	// Left counts what has left it. The store had that before: who reads the store, then the overlay, and sees that the
	// count has changed meanwhile may have seen it in neither, and reads both again.
	Left() uint64
}

// Server answers reads from the store. Who may read what is not judged here.
type Server struct {
	store       *store.Store
	overlay     Overlay
	corrections func() Corrections
	clock       clock.WithTickerAndDelayedExecution
	logger      *slog.Logger
	count       *counters
}

// answer writes what was found.
type answer func(http.ResponseWriter, *http.Request)

// Knows reports whether the store can answer a read, if only by saying that something does not exist.
func (s *Server) Knows(component string, req *http.Request, q *request.Request) bool {
	_, err := s.find(component, req, q)
	return err == nil
}

// Serve answers a read. A watch stays open until ctx or the request ends.
func (s *Server) Serve(ctx context.Context, component string, w http.ResponseWriter, req *http.Request,
	q *request.Request) {
	verb := verbOf(q)
	a, err := s.find(component, req, q)
	if err != nil {
		s.count.answers.WithLabelValues(verb, "unknown").Inc()
		s.logger.Debug("the store does not know what is asked", "component", component, "path", q.Path,
			"why", err.ErrStatus.Message)
		if q.GoesOn() { // told 503, client-go lists as soon as the cloud is back
			err = apierrors.NewTooManyRequests(err.ErrStatus.Message, 0)
		}
		rest.WriteError(w, req, err)
		return
	}
	s.count.answers.WithLabelValues(verb, "known").Inc()
	var late time.Duration
	if verb == "watch" {
		late = shortWatch
	}
	ctx, cancel := s.merge(ctx, req.Context(), late)
	defer cancel()
	if verb == "watch" {
		s.count.watches.Inc()
		defer s.count.watches.Dec()
	}
	a(w, req.WithContext(ctx))
}

// merge returns the context of a request that also ends with another one, but lives some time.
func (s *Server) merge(ctx, request context.Context, atLeast time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(request)
	began := s.clock.Now()
	stop := context.AfterFunc(ctx, func() {
		if left := atLeast - s.clock.Since(began); left > 0 {
			s.clock.AfterFunc(left, cancel)
			return
		}
		cancel()
	})
	return out, func() { stop(); cancel() }
}

// find looks for what a request asks for.
func (s *Server) find(component string, req *http.Request, q *request.Request) (answer, *apierrors.StatusError) {
	switch {
	case q.Verb == "get" && isDocument(q.Path):
		return s.document(req, q)
	case !ofObjects(q), !q.Reads(), q.Subresource != "":
		return nil, unknown(fmt.Sprintf("the cloud is away: %s %s has to wait for it", q.Method, q.Path))
	case q.Verb == "get":
		return s.get(component, q, wanted(req.Header))
	}
	return s.collection(component, q, wanted(req.Header))
}

func (s *Server) get(component string, q *request.Request, f store.Form) (answer, *apierrors.StatusError) {
	var a store.Answer
	s.both(func() {
		if a = s.store.Get(component, q.Resource, f, KeyOf(q)); a.Knowledge == store.Known {
			a.Object = s.overlay.Overlay(q.Resource, a.Form, a.Object)
		}
	})
	var items []*wire.Object
	version := uint64(1)
	switch a.Knowledge {
	case store.Unknown:
		return nil,
			unknown(fmt.Sprintf("the cloud is away, and has not said anything about %s to a client of this node", naming(q)))
	case store.KnownAbsent:
		return func(w http.ResponseWriter, req *http.Request) {
			setAge(w.Header(), s.clock.Now(), a.AsOf)
			rest.WriteError(w, req,
				apierrors.NewNotFound(schema.GroupResource{Group: q.Resource.Group, Resource: q.Resource.Name}, q.Name))
		}, nil
	case store.Known:
		items, version = append(items, a.Object), max(a.Object.Version, 1)
	}
	k := keptOf(q, a.Kind, "", a.Form, version, func() iter.Seq[*wire.Object] { return slices.Values(items) })
	return s.through(q, k, a.AsOf, items), nil
}

// both reads the store, then the overlay, and again if anything went from the one to the other meanwhile.
func (s *Server) both(read func()) {
	for {
		before := s.overlay.Left()
		if read(); s.overlay.Left() == before {
			return
		}
	}
}

// document answers with a kept document.
func (s *Server) document(req *http.Request, q *request.Request) (answer, *apierrors.StatusError) {
	d, ok := findDocument(s.store, req.Header, q.Path)
	if !ok {
		return nil,
			unknown("the cloud is away, and no client on this node has asked for " + q.Path + " in this form while it was there")
	}
	return func(w http.ResponseWriter, req *http.Request) {
		h := w.Header()
		setAge(h, s.clock.Now(), d.At)
		h.Set("Cache-Control", "no-cache, private")
		h.Set("Vary", "Accept")
		if d.ETag != "" {
			h.Set("Etag", d.ETag)
			if slices.Contains(req.Header.Values("If-None-Match"), d.ETag) {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		h.Set("Content-Type", d.ContentType)
		h.Set("Content-Length", strconv.Itoa(len(d.Body)))
		_, _ = w.Write(d.Body)
	}, nil
}

// collection answers a list or watch.
func (s *Server) collection(component string, q *request.Request, f store.Form) (answer, *apierrors.StatusError) {
	shape := shapeOf(q, component, f)
	c, ok := s.store.Read(shape)
	if !ok {
		return nil, unknown(fmt.Sprintf("the cloud is away, and no client of this node has a complete list of %s", naming(q)))
	}
	return func(w http.ResponseWriter, req *http.Request) {
		var items []*wire.Object
		if version := q.Query.Get("resourceVersion"); q.Verb == "list" || q.IsTrue("sendInitialEvents") || version == "" ||
			version == "0" {
			s.both(func() {
				items = items[:0]
				for o := range c.Items {
					items = append(items, s.overlay.Overlay(q.Resource, c.Form, o))
				}
			})
			if len(items) != len(c.Keys) { // one was lost since it was looked at
				rest.WriteError(w, req, unknown(fmt.Sprintf("the cloud is away, and the kept list of %s is damaged", naming(q))))
				return
			}
		}
		s.through(q, s.keptList(q, shape, c), c.AsOf, items)(w, req)
	}, nil
}

// keptList is what it has of a list or watch.
func (s *Server) keptList(q *request.Request, shape store.Shape, c *store.Collection) kept {
	return keptOf(q, c.Kind, c.ListKind, c.Form, max(c.Version, 1), func() iter.Seq[*wire.Object] {
		return func(yield func(*wire.Object) bool) {
			now, ok := s.store.Read(shape)
			if !ok || now.Form != c.Form {
				return
			}
			for o := range now.Items {
				if !yield(s.overlay.Overlay(q.Resource, c.Form, o)) {
					return
				}
			}
		}
	})
}

// Corrected reports whether a client is to be answered from the store though the cloud is there: what it asks for is
// corrected, and the cloud may not know that yet. until ends when that changes.
func (s *Server) Corrected(component string, req *http.Request, q *request.Request) (until context.Context, yes bool) {
	holds, until := s.corrections().Holds()
	if !holds || !ofObjects(q) || q.Subresource != "" || q.Verb != "list" && q.Verb != "watch" {
		return nil, false
	}
	shape := shapeOf(q, component, wanted(req.Header))
	c, ok := s.store.Read(shape)
	version, _ := strconv.ParseUint(q.Query.Get("resourceVersion"), 10, 64)
	if !ok || version > c.Version { // it has been at the cloud since
		return nil, false
	}
	k := s.keptList(q, shape, c)
	over := s.corrections().Stored(k.resource, k.version, k.objects)
	if over == nil {
		return nil, false
	}
	for o := range k.objects() {
		if over.Show(o) != o {
			return until, true
		}
	}
	return nil, false
}

// Begin has an answer of the cloud to a watch begin with what its client is owed.
func (s *Server) Begin(component string, resp *http.Response, q *request.Request) {
	enc, ok := encodingOf(resp.Header)
	if !ofObjects(q) || !q.GoesOn() || !ok || resp.StatusCode != http.StatusOK ||
		resp.Header.Get("Content-Encoding") != "" {
		return
	}
	shape := shapeOf(q, component, wanted(resp.Request.Header))
	c, ok := s.store.Read(shape)
	version, _ := strconv.ParseUint(q.Query.Get("resourceVersion"), 10, 64)
	if !ok || version > c.Version || wire.Encoding(c.Form) != enc {
		return
	}
	k := s.keptList(q, shape, c)
	owed := s.corrections().Owed(k.resource, version, k.objects)
	if len(owed) == 0 {
		return
	}
	if !q.IsTrue("allowWatchBookmarks") {
		version = 0
	}
	first, err := rest.Frames(k.resource, owed, version)
	if err != nil {
		return
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), resp.Body), resp.Body}
}

// through answers from a list of these items, which the store has selected: by the rules of kube-apiserver on versions,
// encodings, pages and watches.
func (s *Server) through(q *request.Request, k kept, asOf time.Time, items []*wire.Object) answer {
	return func(w http.ResponseWriter, req *http.Request) {
		h := rest.Handler{
			Source:  relay.NewList(k.resource, k.version, items, s.clock),
			Overlay: s.corrections().Stored(k.resource, k.version, k.objects),
			Alone:   func() bool { return true }, Logger: s.logger,
			Fallback: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				rest.WriteError(w, req,
					unknown(
						fmt.Sprintf("the cloud is away, and %s is kept as %v only, of which nothing can be made that this client accepts",
							naming(q), k.form)))
			}),
		}
		setAge(w.Header(), s.clock.Now(), asOf)
		h.Serve(w, req, q)
	}
}

// setAge tells how old an answer is, if that is known.
func setAge(h http.Header, now, asOf time.Time) {
	if !asOf.IsZero() {
		h.Set(contract.AgeHeader, strconv.FormatInt(int64(max(now.Sub(asOf), 0).Seconds()), 10))
	}
}

// unknown says what is missing. It names no time to wait: client-go would ask ten times, a second each, before it told
// anybody; informers ask again by themselves.
func unknown(why string) *apierrors.StatusError { return apierrors.NewServiceUnavailable(why) }
