package hub

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/request"
)

// front is the handler of all API traffic: it tells who calls, and sends the request to a relay or to the cloud.
type front struct {
	identifier  *identifier
	gate        *gate
	router      router
	authorizer  *authorizer
	relays      []*relay.Relay  // by target.index
	readers     []*rest.Handler // of the relays
	feeders     []*feeder       // likewise
	consistency *consistency
	proxy       *proxy
	metrics     *metrics
	beats       *beats
	shelter     *shelter // nil: writes are the cloud's
	filters     *filter.Filters
	stalls      *stalls
	closing     atomic.Bool
}

// close refuses new requests from now on. It is called before streams end: a client that opens its watch again at a hub that is about to end, on
// the connection it has, would see it end at once with nothing in it, and list.
func (f *front) close() { f.closing.Store(true) }

// callerKey carries the caller to a relay's fallback.
type callerKey struct{}

type called struct {
	who    caller
	target *target
}

func (f *front) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if f.closing.Load() { // as kube-apiserver with --shutdown-send-retry-after: clients try again, elsewhere if they can, and do not list
		w.Header().Set("Connection", "close")
		writeStatus(w, apierrors.NewTooManyRequests("the hub is about to end", 1))
		return
	}
	if refusal := illFormed(req); refusal != nil {
		rec := f.stalls.record(w)
		defer f.stalls.forget(rec)
		defer f.metrics.answered(rec)
		f.refuse(rec, req, refusal)
		return
	}
	asked := request.Parse(req)
	f.filters.Serve(w, req, asked, func(w http.ResponseWriter, req *http.Request) { f.answer(w, req, asked) })
}

// answer answers a request as it does for everybody. Whoever judges it, answers it or keeps it goes by what was parsed at the door.
func (f *front) answer(w http.ResponseWriter, req *http.Request, asked *request.Request) {
	clean(req.Header)
	req, who, done := f.shelter.admit(req, f.identifier.identify(req))
	defer done()
	rec := f.stalls.record(w)
	defer f.stalls.forget(rec)
	defer f.metrics.answered(rec) // also when a broken stream panics its way out
	req, admission, refusal := f.gate.admit(rec, req, who, f.authorizer.judge.Refused(req.Header))
	if refusal != nil {
		f.refuse(rec, req, refusal)
		return
	}
	defer admission.leave()
	defer rec.finish(req)
	t, lost := f.route(req.Header, asked, who)
	consistent := req.Header.Get(contract.ConsistentHeader)
	switch {
	case consistent != "" && consistent != "true" && consistent != "false":
		writeStatus(rec, apierrors.NewBadRequest(fmt.Sprintf("header %s: %q: want true or false", contract.ConsistentHeader, consistent)))
	case t != nil && !t.Writes() && consistent != "true":
		rec.route = "relay"
		f.read(rec, req, who, t)
	case who.kind == thisNode && ownLease(req.Header, asked, f.beats.node):
		f.beats.serve(rec, req, asked)
	default:
		if refusal := f.gate.passes(req, who); refusal != nil {
			admission.slow()
			f.refuse(rec, req, refusal)
			return
		}
		req, taken := f.shelter.take(rec, req, asked, who)
		if !taken {
			rec.route = "cloud"
			f.proxy.serve(rec, req, asked, who, t)
		}
		if lost != nil && rec.code == http.StatusOK {
			lost.found()
		}
	}
}

// refuse answers a request for which nothing was done. As long as its client does not take the answer the hub holds all that was sent; so beyond a bound there
// is no answer: the stream ends, over HTTP/1.1 the connection.
func (f *front) refuse(rec *recorder, req *http.Request, refusal *apierrors.StatusError) {
	rec.route = "refused"
	address := addressOf(req)
	if f.gate.refusals.Enter(address) != "" {
		rec.code = int(refusal.ErrStatus.Code)
		panic(http.ErrAbortHandler)
	}
	defer f.gate.refusals.Leave(address)
	writeStatus(rec, refusal)
	rec.finish(req)
}

// route finds the relay that is to answer. If that is not given the resource, the request is the cloud's to answer; lost is what feeds the relay.
func (f *front) route(header http.Header, asked *request.Request, who caller) (t *target, lost *feeder) {
	t = f.router.route(asked)
	switch {
	case t == nil || t.Writes():
		return t, nil
	case f.shelter != nil && who.kind == thisNode && t.ofNode(f.beats.node) && !impersonates(header):
		return nil, nil
	case !f.feeders[t.index].unavailable():
		return t, nil
	}
	return nil, f.feeders[t.index]
}

// read serves a get, list or watch of a relayed resource.
func (f *front) read(w *recorder, req *http.Request, who caller, t *target) {
	if refusal := f.authorizer.authorize(req.Context(), who, req.Header, t.rights); refusal != nil {
		if refusal.ErrStatus.Code == http.StatusServiceUnavailable && admissionOf(req.Context()).unproven() {
			refusal = unavailable(errUnavailable.Error() + ", and nothing is remembered of it") // why names addresses
		}
		if t.Verb == "watch" && goesOn(t.Request) {
			refusal = comeAgain(refusal)
		}
		writeStatus(w, refusal)
		return
	}
	admissionOf(req.Context()).proven()
	if t.Verb == "watch" { // the cloud would end it when the credentials count no more
		ctx, done := f.authorizer.judge.While(req.Context(), req.Header)
		defer done()
		if f.authorizer.doubt() { // and may not grant it
			var end context.CancelFunc
			ctx, end = context.WithTimeout(ctx, doubtfulWatch)
			defer end()
		}
		req = req.WithContext(ctx)
	}
	r := f.relays[t.index]
	switch version, _ := strconv.ParseUint(t.Query.Get("resourceVersion"), 10, 64); {
	case version > 0 && (t.Verb != "watch" || t.IsTrue("sendInitialEvents")):
		f.consistency.ahead(t, version)
	case t.Query.Get("resourceVersion") == "" && t.Query.Get("continue") == "" && !f.consistency.current(req.Context(), t):
		f.behind(w, req, who, t)
		return
	}
	if age, ok := f.consistency.ages[t.index].age(); ok && r.Status().Synced {
		w.Header().Set(contract.AgeHeader, strconv.FormatInt(int64(age.Seconds()), 10))
	}
	f.readers[t.index].Serve(w, req.WithContext(context.WithValue(req.Context(), callerKey{}, called{who, t})), t.Request)
}

// goesOn tells whether a watch begins where its client stands.
func goesOn(watch *request.Request) bool {
	version, _ := strconv.ParseUint(watch.Query.Get("resourceVersion"), 10, 64)
	return version > 0 && !watch.IsTrue("sendInitialEvents")
}

// behind answers a read that its relay cannot answer yet.
func (f *front) behind(w *recorder, req *http.Request, who caller, t *target) {
	done, refusal := f.consistency.pass(t)
	if refusal != nil {
		writeStatus(w, refusal)
		return
	}
	defer done()
	w.route = "cloud"
	f.proxy.serve(w, req, t.Request, who, t)
}

// fallback answers what a relay cannot answer truthfully: the cloud does.
func (f *front) fallback(w http.ResponseWriter, req *http.Request) {
	c, ok := req.Context().Value(callerKey{}).(called)
	if !ok { // nobody is known to ask
		writeStatus(w, unauthorized("no caller"))
		return
	}
	if rec, ok := w.(*recorder); ok {
		rec.route = "cloud"
	}
	w.Header().Del(contract.AgeHeader)
	f.proxy.serve(w, req, c.target.Request, c.who, c.target)
}

func unauthorized(why string) *apierrors.StatusError { return apierrors.NewUnauthorized(why) }

// recorder notes what was answered, and since when a write is under way.
type recorder struct {
	http.ResponseWriter
	clock   clock.PassiveClock
	route   string
	code    int
	writing atomic.Int64 // ns; 0: none is
	rest    bool         // what was written last may not have been sent
}

func (r *recorder) begin() { r.writing.Store(r.clock.Now().UnixNano()) }
func (r *recorder) end()   { r.writing.Store(0) }

func (r *recorder) WriteHeader(code int) {
	if r.code < 200 {
		r.code = code
	}
	r.ResponseWriter.WriteHeader(code)
}

func (r *recorder) Write(p []byte) (int, error) {
	if r.code < 200 {
		r.code = http.StatusOK
	}
	r.rest = true
	r.begin()
	defer r.end()
	return r.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (r *recorder) Flush() {
	r.rest = false
	r.begin()
	defer r.end()
	_ = http.NewResponseController(r.ResponseWriter).Flush()
}

// finish sends the rest of an answer over HTTP/2. Else the server would do so when nobody looks any more whether the client takes it.
func (r *recorder) finish(req *http.Request) {
	if r.rest && req.ProtoMajor == 2 {
		r.Flush()
	}
}

// Unwrap lets http.ResponseController flush, hijack and set deadlines.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
