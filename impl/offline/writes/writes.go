package writes

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store/queue"
)

// Writes decides on the writes of a node's clients. See the package comment.
type Writes struct {
	comeback
	tokens  *tokens
	metrics *metrics

	deciding sync.Mutex // one decision at a time: each is made of what the one before it left

	telling sync.Mutex
	told    map[string]time.Time // when refusals of a kind were last logged
}

// tellAgain is how long refusals of one kind are one line in the log.
const tellAgain = 10 * time.Minute

// New makes it; Run does what waits.
func New(c Config) (*Writes, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	t, err := openTokens(c)
	if err != nil {
		return nil, err
	}
	return &Writes{comeback: newComeback(c), tokens: t, metrics: newMetrics(), told: map[string]time.Time{}}, nil
}

type writeKey struct{}

// Take answers a write if that is not the cloud's to do: because the cloud is away, or because it has not got yet what
// was written to the same object meanwhile. Otherwise the request that is returned is to be sent to the cloud; if it
// cannot be sent, Fallback answers it. own: the request is this node's, proved by certificate; late: by one that has
// expired, so that nothing is queued. Requests that do not write are not taken, and those about the node's own Lease
// must not come here.
func (w *Writes) Take(rw http.ResponseWriter, req *http.Request, asked *request.Request, own,
	late bool) (*http.Request, bool) {
	if !asked.Writes() {
		return req, false
	}
	r := &write{
		target: targetOf(asked), verb: asked.Verb, own: own && plain(req.Header, asked), late: late,
		contentType: req.Header.Get("Content-Type"),
	}
	away := w.Reach() == member.CloudAway
	if away {
		w.see() // what is written from here on is pushed in its turn, whatever Run has seen
	}
	if asked.Odd || !r.own || !r.answerable() || r.late && r.queued() {
		if away && !w.idle(rw, req, asked, r) {
			w.refuse(rw, req, r, refusal(r))
		}
		return req, away
	}
	var err error
	if r.body, err = readBody(req); err != nil {
		if away {
			w.refuse(rw, req, r, apierrors.NewBadRequest("read the body: "+err.Error()))
		}
		return req, away
	}
	if (away || w.waits(r)) && w.answer(rw, req, r, away) {
		return req, true
	}
	return req.WithContext(context.WithValue(req.Context(), writeKey{}, r)), false
}

// idle answers a write by another client than the node if it would change nothing, see unchanged; false if it does not.
func (w *Writes) idle(rw http.ResponseWriter, req *http.Request, asked *request.Request, r *write) bool {
	if asked.Odd || !plain(req.Header, asked) || r.Resource != nodes() || r.name != w.Node || !r.answerable() ||
		!w.MayGet(req.Header) {
		return false
	}
	var err error
	if r.body, err = readBody(req); err != nil {
		return false
	}
	a := w.unchanged(r)
	if a == nil {
		return false
	}
	w.metrics.answered(r, "unchanged")
	a.write(rw, req.Header.Values("Accept"))
	return true
}

// Takes reports whether a write that Take let through could be answered by Fallback.
func (w *Writes) Takes(req *http.Request) bool {
	_, ok := req.Context().Value(writeKey{}).(*write)
	return ok
}

// Fallback answers a write that Take let through and that could not be sent; false if it does not.
func (w *Writes) Fallback(rw http.ResponseWriter, req *http.Request) bool {
	r, ok := req.Context().Value(writeKey{}).(*write)
	return ok && w.answer(rw, req, r, true)
}

// plain reports whether a request is nothing but itself.
func plain(header http.Header, asked *request.Request) bool {
	for name := range header {
		if name == "Content-Encoding" || strings.HasPrefix(name, "Impersonate-") {
			return false
		}
	}
	return !asked.Upgrade && !asked.Query.Has("dryRun")
}

// answer decides on a request and answers it. Unless must is set, what could not be done here is left to the cloud.
func (w *Writes) answer(rw http.ResponseWriter, req *http.Request, r *write, must bool) bool {
	a, err := w.decide(req.Context(), r)
	if err != nil {
		if !must && err.ErrStatus.Code == http.StatusServiceUnavailable {
			return false
		}
		w.refuse(rw, req, r, err)
		return true
	}
	w.metrics.answered(r, "taken")
	a.write(rw, req.Header.Values("Accept"))
	return true
}

func (w *Writes) decide(ctx context.Context, r *write) (*answer, *apierrors.StatusError) {
	w.deciding.Lock()
	defer w.deciding.Unlock()
	for ctx.Err() == nil {
		r.again = false
		if a, err := w.try(r); !r.again {
			return a, err
		}
	}
	return nil, unavailable("the request was cancelled") // the client is gone
}

func (w *Writes) try(r *write) (*answer, *apierrors.StatusError) {
	switch {
	case r.token():
		return w.tokens.serve(r)
	case r.Resource == events():
		return w.event(r, eventKind(), queue.Event)
	case r.Resource == groupEvents():
		return w.event(r, groupEventKind(), queue.GroupEvent)
	case r.Resource == pods():
		return w.podStatus(r)
	case r.verb == "create":
		return nil, w.register(r)
	}
	return w.node(r)
}

func (w *Writes) refuse(rw http.ResponseWriter, req *http.Request, r *write, err *apierrors.StatusError) {
	w.metrics.answered(r, "refused")
	level := slog.LevelDebug
	if w.news(r, err.ErrStatus.Code) {
		level = slog.LevelInfo
	}
	w.Logger.Log(req.Context(), level, "a write is refused while the cloud is away", "verb", r.verb, "what",
		r.target.String(), "by", req.UserAgent(), "code", err.ErrStatus.Code,
		"why", err.ErrStatus.Message)
	writeStatus(rw, req.Header.Values("Accept"), err)
}

// news reports whether a refusal is worth a line: clients try again every second.
func (w *Writes) news(r *write, code int32) bool {
	key := fmt.Sprint(r.verb, " ", r.label(), " ", code)
	now := w.Clock.Now()
	w.telling.Lock()
	defer w.telling.Unlock()
	if last, ok := w.told[key]; ok && now.Sub(last) < tellAgain {
		return false
	}
	w.told[key] = now
	return true
}

// Observe looks into the cloud's answers to requests that Take let through: tokens that it issued to this node are
// kept. The answer stays what it is.
func (w *Writes) Observe(resp *http.Response) {
	r, ok := resp.Request.Context().Value(writeKey{}).(*write)
	if !ok || !r.token() || resp.StatusCode != http.StatusCreated || resp.Header.Get("Content-Encoding") != "" ||
		resp.ContentLength > maxToken {
		return
	}
	head, err := peek(&resp.Body, maxToken)
	if err != nil || len(head) > maxToken {
		return
	}
	if err := w.tokens.keep(r, resp.Header.Get("Content-Type"), head); err != nil {
		w.Logger.Warn("a token cannot be kept for when the cloud is away", "account", r.key().String(), "err", err)
	}
}

var _ prometheus.Collector = (*Writes)(nil)

// Describe implements prometheus.Collector.
func (w *Writes) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, ch) }

// Collect implements prometheus.Collector. What the queue holds and did is among the store's metrics.
func (w *Writes) Collect(ch chan<- prometheus.Metric) { w.metrics.collect(ch, w.Phase()) }
