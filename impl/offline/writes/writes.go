package writes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/request"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/store/queue"
)

// Reach is what is known of the way to the cloud.
type Reach uint8

// Unknown is what it is before anything was heard of the cloud: requests are tried.
const (
	Unknown Reach = iota
	Here
	Away
)

// Config is what Writes is made of.
type Config struct {
	// Node is the name of this node. Required.
	Node string
	// Store has what the cloud said, and the queue. Required.
	Store *store.Store
	// Cloud sends requests to the cloud as this node; scheme and host of their URLs do not matter. Required.
	Cloud http.RoundTripper
	// Reach tells whether the cloud can be reached. It must not block. After a change the caller calls Changed. Required.
	Reach func() Reach
	// Moved is called after each change of the phase, by any goroutine. It must not block. Default: nobody is told.
	Moved func()
	// Spread is the time over which nodes that find the cloud again come back to it; at most as long as it was away. Default 5 s.
	Spread time.Duration
	// Patience is how long, after its turn has come, clients of this node go without the cloud's latest state while what
	// waits is pushed. Default 10 s.
	Patience time.Duration
	// Seed is of all that is random here. It is told in the log.
	Seed uint64
	// Clock is for tests. Default the real one.
	Clock clock.WithTicker
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

// Validate checks a configuration; zero values that have a default are fine.
func (c Config) Validate() error {
	switch {
	case c.Node == "":
		return errors.New("writes: no name of the node")
	case c.Store == nil:
		return errors.New("writes: no store")
	case c.Cloud == nil || c.Reach == nil:
		return errors.New("writes: no way to the cloud")
	case c.Spread < 0:
		return fmt.Errorf("writes: a spread of %v: want a time, or 0 for the default", c.Spread)
	case c.Patience < 0:
		return fmt.Errorf("writes: a patience of %v: want a time, or 0 for the default", c.Patience)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Spread == 0 {
		c.Spread = 5 * time.Second
	}
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	if c.Moved == nil {
		c.Moved = func() {}
	}
	c.Clock, c.Logger = cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{}), cmp.Or(c.Logger, slog.Default())
	return c
}

// Writes decides on the writes of a node's clients. See the package comment.
type Writes struct {
	Config
	queue   *queue.Queue
	tokens  *tokens
	metrics *metrics

	deciding sync.Mutex // one decision at a time: each is made of what the one before it left

	changed chan struct{} // wakes Run
	written chan struct{} // wakes who drains

	mu   sync.Mutex
	turn turn
	told map[string]time.Time // when refusals of a kind were last logged
}

// tellAgain is how long refusals of one kind are one line in the log.
const tellAgain = 10 * time.Minute

// New makes it; Run does what waits.
func New(c Config) (*Writes, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	w := &Writes{
		Config: c, queue: c.Store.Queue(), metrics: newMetrics(),
		changed: make(chan struct{}, 1), written: make(chan struct{}, 1), told: map[string]time.Time{},
	}
	w.turn = newTurn(c.Spread, c.Patience, rand.New(rand.NewPCG(c.Seed, 31)), c.Clock.Now(), w.queue.Len() > 0)
	var err error
	w.tokens, err = openTokens(c.Store, c.Clock)
	return w, err
}

// write is one that was looked into.
type write struct {
	target
	verb        string
	own         bool   // it is this node's own
	late        bool   // by a certificate that has expired
	contentType string // of body
	body        []byte
	again       bool // what it was decided from has changed
}

type writeKey struct{}

// Take answers a write if that is not the cloud's to do: because the cloud is away, or because it has not got yet what was
// written to the same object meanwhile. Otherwise the request that is returned is to be sent to the cloud; if it cannot be
// sent, Fallback answers it. own: the request is this node's, proved by certificate; late: by one that has expired, so that nothing is queued.
// Requests that do not write are not taken, and those about the node's own Lease must not come here.
func (w *Writes) Take(rw http.ResponseWriter, req *http.Request, asked *request.Request, own, late bool) (*http.Request, bool) {
	if !asked.Writes() {
		return req, false
	}
	r := &write{target: targetOf(asked), verb: asked.Verb, own: own && plain(req.Header, asked), late: late, contentType: req.Header.Get("Content-Type")}
	away := w.Reach() == Away
	if away {
		w.see() // what is written from here on is pushed in its turn, whatever Run has seen
	}
	if asked.Odd || !r.own || !r.answerable() || r.late && r.queued() {
		if away {
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

// Fallback answers a write that Take let through and that could not be sent; false if it does not.
func (w *Writes) Fallback(rw http.ResponseWriter, req *http.Request) bool {
	r, ok := req.Context().Value(writeKey{}).(*write)
	return ok && w.answer(rw, req, r, true)
}

// plain tells whether a request is nothing but itself.
func plain(header http.Header, asked *request.Request) bool {
	for name := range header {
		if name == "Content-Encoding" || strings.HasPrefix(name, "Impersonate-") {
			return false
		}
	}
	return !asked.Upgrade && !asked.Query.Has("dryRun")
}

// answerable tells whether a request is of a kind that is answered here.
func (r *write) answerable() bool {
	switch {
	case r.is(nodes(), "status"), r.is(pods(), "status"):
		return r.verb == "update" || r.verb == "patch"
	case r.is(nodes(), ""):
		return r.verb == "patch" || r.verb == "create"
	case r.is(events(), ""), r.is(groupEvents(), ""):
		return r.verb == "create" || r.verb == "patch"
	}
	return r.token()
}

// queued tells whether a request that is answered here goes to the cloud later.
func (r *write) queued() bool { return !r.token() && (!r.is(nodes(), "") || r.verb != "create") }

// waits tells whether the cloud has yet to get something that was written to the same object. To send the cloud a
// later write first would have the earlier one undo it.
func (w *Writes) waits(r *write) bool {
	if r.verb == "create" {
		return false
	}
	return slices.ContainsFunc(kindsOf(r.Resource), func(k queue.Kind) bool { return w.queue.Waits(k, r.namespace, r.name) })
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
	w.Logger.Log(req.Context(), level, "a write is refused while the cloud is away", "verb", r.verb, "what", r.target.String(), "by", req.UserAgent(), "code", err.ErrStatus.Code,
		"why", err.ErrStatus.Message)
	writeStatus(rw, req.Header.Values("Accept"), err)
}

// news tells whether a refusal is worth a line: clients try again every second.
func (w *Writes) news(r *write, code int32) bool {
	key := fmt.Sprint(r.verb, " ", r.label(), " ", code)
	now := w.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.told[key]; ok && now.Sub(last) < tellAgain {
		return false
	}
	w.told[key] = now
	return true
}

// put queues a write, durably. seen is the entry that it was made from.
func (w *Writes) put(r *write, q queue.Write, seen *queue.Entry) *apierrors.StatusError {
	if err := w.queue.PutAfter(q, seen); err != nil {
		r.again = errors.Is(err, queue.ErrMoved)
		return notQueued(err)
	}
	poke(w.written)
	return nil
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
