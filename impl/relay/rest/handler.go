package rest

import (
	"context"
	"log/slog"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// Source is what a Handler answers from: a *relay.Relay. All methods may be called by many.
type Source interface {
	Resource() relay.Resource
	Status() relay.Status
	// Denied is the answer to everybody while the resource is not given here; nil: it is.
	Denied() *apierrors.StatusError
	// Select refuses what cannot be selected by.
	Select(namespace string, l labels.Selector, f fields.Selector) (relay.Selector, error)
	Get(ctx context.Context, namespace, name string, at relay.At) (*wire.Object, error)
	Read(ctx context.Context, o relay.PageOptions) (*relay.Page, error)
	Watch(ctx context.Context, o relay.WatchOptions) (*relay.Cursor, error)
	// Stream is told of each answer that may take long to write.
	Stream(client string, abort func()) *relay.Stream
	Clock() clock.WithTickerAndDelayedExecution
}

// Handler answers get, list and watch of the resource of a Source. Whoever calls it must have authorized the request.
type Handler struct {
	Source
	// Fallback answers what the Source cannot answer truthfully: tables of kinds without columns here, YAML, and
	// transcoding that would drop fields newer than the compiled types. nil: 406 Not Acceptable.
	Fallback http.Handler
	// Alone tells whether Fallback knows no better answer now, only why there is none, for example because the cloud is away: of an Accept
	// header, a clause that can be answered here is then preferred to an earlier one that cannot. It must not wait. nil: it always knows.
	Alone func() bool
	// Logger gets what an operator should know. nil: slog.Default().
	Logger *slog.Logger
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	h.Serve(w, req, request.Parse(req))
}

// Serve answers a request that has been parsed.
func (h *Handler) Serve(w http.ResponseWriter, req *http.Request, asked *request.Request) {
	TellHistory(w.Header(), h.Status().History)
	denied := h.Denied()
	if denied != nil && h.Fallback != nil {
		h.Fallback.ServeHTTP(w, req)
		return
	}
	if denied != nil {
		WriteError(w, req, denied)
		return
	}
	q, err := h.check(req.Header, asked)
	if err == nil && q.out.fallback {
		h.Fallback.ServeHTTP(w, req)
		return
	}
	if warning := h.Resource().Warning(); warning != "" {
		w.Header().Add("Warning", `299 - "`+warning+`"`)
	}
	if err == nil {
		switch asked.Verb {
		case "get":
			err = h.get(w, req, q)
		case "watch":
			err = h.watch(w, req, q)
		default:
			err = h.list(w, req, q)
		}
	}
	if err != nil {
		WriteError(w, req, err)
	}
}

func (h *Handler) logger() *slog.Logger {
	to := h.Logger
	if to == nil {
		to = slog.Default()
	}
	return to.With("resource", h.Resource().String())
}

func (h *Handler) get(w http.ResponseWriter, req *http.Request, q *query) error {
	o, err := h.Get(req.Context(), q.In(), q.Name, q.at)
	if err != nil {
		return err
	}
	e := h.encoder(q.out)
	body, err := e.object(o, false)
	if err != nil {
		return err
	}
	head, tail := []byte(nil), []byte{'\n'}
	if q.out.media == mediaProtobuf {
		head, tail = wire.AppendEnvelope(nil, e.kind, len(body)), wire.EnvelopeTail()
	}
	out := newBody(w, nil, q.out, int64(len(head)+len(body)+len(tail)))
	defer out.close()
	for _, part := range [][]byte{head, body, tail} {
		out.write(part)
	}
	return nil
}

// stream is an answer of which the writes can be made to fail.
func (h *Handler) stream(w http.ResponseWriter, req *http.Request) *relay.Stream {
	ctl := http.NewResponseController(w)
	return h.Stream(req.UserAgent()+" "+req.RemoteAddr, func() { _ = ctl.SetWriteDeadline(past) })
}
