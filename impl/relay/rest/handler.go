package rest

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
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

// Handler answers get, list and watch of the resource of a Source. Its caller must have authorized the request.
type Handler struct {
	Source
	// Fallback answers what the Source cannot answer truthfully: tables of kinds without columns here, YAML, and
	// transcoding that would drop fields newer than the compiled types. nil: 406 Not Acceptable.
	Fallback http.Handler
	// Alone reports whether Fallback knows no better answer now, only why there is none, for example because the cloud is
	// away: of an Accept header, a clause that can be answered here is then preferred to an earlier one that cannot. It
	// must not wait. nil: it always knows.
	Alone func() bool
	// Overlay shows clients another form of what the Source holds. nil: they see that.
	Overlay Overlay
	// Logger gets what an operator should know. nil: slog.Default().
	Logger *slog.Logger
}

func (h *Handler) logger() *slog.Logger {
	return cmp.Or(h.Logger, slog.Default()).With("resource", h.Resource().String())
}

// stream is an answer of which the writes can be made to fail.
func (h *Handler) stream(w http.ResponseWriter, req *http.Request) *relay.Stream {
	ctl := http.NewResponseController(w)
	return h.Stream(req.UserAgent()+" "+req.RemoteAddr, func() { _ = ctl.SetWriteDeadline(past) })
}

// encoder makes an encoder of what the source holds.
func (h *Handler) encoder(o output) *encoder { return newEncoder(h.Resource(), h.Clock(), o) }
