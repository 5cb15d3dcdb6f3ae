package door

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/bounds"
	"github.com/weir-edge/weir/impl/hub/feeder"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// Config is what a Door is made of. All of it is needed, but for Filters and Own.
type Config struct {
	Node        string
	Identifier  *access.Identifier
	Gate        *access.Gate
	Authorizer  *access.Authorizer
	Stalls      *answer.Stalls
	Sources     *feeder.Sources // what is relayed
	Consistency *relayed.Consistency
	Beats       *beat.Beats
	Proxy       *Proxy
	Shelter     Shelter
	Filters     *filter.Filters // nil: all see what the cloud shows
	Own         *filter.Own     // nil: so does this node
	Answered    func(*answer.Recorder)
	Logger      *slog.Logger
}

// Door is the handler of all API traffic: it tells who calls, and sends the request to a relay or to the cloud.
type Door struct {
	Config
	router  relayed.Router
	closing atomic.Bool
}

// New makes a door that is open.
func New(c Config) *Door { return &Door{Config: c, router: c.Sources.Relays} }

// Close refuses new requests from now on. It is called before streams end: a client that opens its watch again at a hub
// that is about to end, on the connection it has, would see it end at once with nothing in it, and list.
func (d *Door) Close() { d.closing.Store(true) }

// callerKey carries the caller to a relay's fallback.
type callerKey struct{}

type called struct {
	who    access.Caller
	target *relayed.Target
}

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	// as kube-apiserver with --shutdown-send-retry-after: clients try again, elsewhere if they can, and do not list.
	if d.closing.Load() {
		w.Header().Set("Connection", "close")
		answer.Write(w, apierrors.NewTooManyRequests("the hub is about to end", 1))
		return
	}
	if refusal := illFormed(req); refusal != nil {
		rec := d.Stalls.Record(w)
		defer d.Stalls.Forget(rec)
		defer d.Answered(rec)
		d.refuse(rec, req, refusal)
		return
	}
	asked := request.Parse(req)
	d.Filters.Serve(w, req, asked, func(w http.ResponseWriter, req *http.Request) { d.answer(w, req, asked) })
}

// answer answers a request as it does for everybody. The parts that judge it, answer it or keep it use what was parsed
// at the door.
func (d *Door) answer(w http.ResponseWriter, req *http.Request, asked *request.Request) {
	clean(req.Header)
	req, who, done := d.Shelter.Admit(req, d.Identifier.Identify(req))
	defer done()
	next := func(w http.ResponseWriter, req *http.Request) { d.admit(w, req, asked, who) }
	if who.Kind == access.ThisNode && !access.Impersonates(req.Header) {
		d.Own.Serve(w, req, asked, next)
		return
	}
	next(w, req)
}

// admit answers a request of a caller who is known.
func (d *Door) admit(w http.ResponseWriter, req *http.Request, asked *request.Request, who access.Caller) {
	rec := d.Stalls.Record(w)
	defer d.Stalls.Forget(rec)
	defer d.Answered(rec) // also when a broken stream panics its way out
	req, admission, refusal := d.Gate.Admit(rec, req, who, d.Authorizer.Judge.Refused(req.Header), takes(asked))
	if refusal != nil {
		d.refuse(rec, req, refusal)
		return
	}
	defer admission.Leave()
	defer rec.Finish(req)
	t, lost := d.route(req.Header, asked, who)
	consistent := req.Header.Get(contract.ConsistentHeader)
	switch {
	case consistent != "" && consistent != "true" && consistent != "false":
		answer.Write(rec,
			apierrors.NewBadRequest(fmt.Sprintf("header %s: %q: want true or false", contract.ConsistentHeader, consistent)))
	case t != nil && !t.Writes() && consistent != "true":
		rec.Route = answer.ByRelay
		d.read(rec, req, who, t)
	case who.Kind == access.ThisNode && d.Beats.Own(req.Header, asked):
		d.Beats.Serve(rec, req, asked)
	default:
		if refusal := d.Gate.Passes(req, who); refusal != nil {
			admission.Slow()
			d.refuse(rec, req, refusal)
			return
		}
		req, taken := d.Shelter.Take(rec, req, asked, who)
		if !taken {
			rec.Route = "cloud"
			d.Proxy.ServeUntil(rec, req, asked, who, t, d.over(req.Header, asked, who))
		}
		if lost != nil && rec.Code == http.StatusOK {
			lost.Found()
		}
	}
}

// takes is what a request counts as while it is under way.
func takes(asked *request.Request) int64 {
	if asked.Verb == "watch" && asked.Reads() {
		return bounds.WatchBytes
	}
	return bounds.RequestBytes
}

// refuse answers a request for which nothing was done. As long as its client does not take the answer the hub holds all
// that was sent; so beyond a bound there is no answer: the stream ends, over HTTP/1.1 the connection.
func (d *Door) refuse(rec *answer.Recorder, req *http.Request, refusal *apierrors.StatusError) {
	rec.Route = "refused"
	address := access.AddressOf(req)
	if d.Gate.Refusals.Enter(address) != "" {
		rec.Code = int(refusal.ErrStatus.Code)
		panic(http.ErrAbortHandler)
	}
	defer d.Gate.Refusals.Leave(address)
	answer.Write(rec, refusal)
	rec.Finish(req)
}

// route finds the relay that is to answer. If that is not given the resource, the request is the cloud's to answer;
// lost is what feeds the relay.
func (d *Door) route(header http.Header, asked *request.Request, who access.Caller) (t *relayed.Target,
	lost *feeder.Feeder) {
	t = d.router.Route(asked)
	if t == nil || t.Writes() {
		return t, nil
	}
	f := d.Sources.Of(t.Relay)
	switch {
	case f == nil: // it has just gone
		return nil, nil
	case who.Kind == access.ThisNode && t.OfNode(d.Node) && !access.Impersonates(header):
		return nil, nil
	case !f.Unavailable():
		return t, nil
	}
	return nil, f
}

// over ends a watch that the cloud gives when a relay can go on with it: the relay had nothing to answer with when the
// watch began, or the resource was in no relay then. The client watches on, at the version that it has seen, and is
// answered by the relay. nil: no relay is to.
func (d *Door) over(header http.Header, asked *request.Request, who access.Caller) answer.Over {
	if asked.Verb != "watch" || header.Get(contract.ConsistentHeader) != "" {
		return nil
	}
	inOrder := asked.GoesOn()
	return func(shown func() *wire.Event) bool {
		if !inOrder { // the objects that a watch begins with come in no order
			ev := shown()
			inOrder = ev != nil && ev.Type != wire.Added && ev.Type != wire.Error
			return false
		}
		t, _ := d.route(header, asked, who)
		if t == nil || !t.Relay.Status().Synced {
			return false
		}
		ev := shown()
		return ev != nil && ev.Type != wire.Error && t.Relay.Resumable(ev.Version)
	}
}

// read serves a get, list or watch of a relayed resource.
func (d *Door) read(w *answer.Recorder, req *http.Request, who access.Caller, t *relayed.Target) {
	if refusal := d.Authorizer.Authorize(req.Context(), who, req.Header, t.Rights); refusal != nil {
		if refusal.ErrStatus.Code == http.StatusServiceUnavailable && access.AdmissionOf(req.Context()).Unproven() {
			// why names addresses.
			refusal = answer.Unavailable(access.ErrUnavailable.Error() + ", and nothing is remembered of it")
		}
		if t.GoesOn() {
			refusal = answer.ComeAgain(refusal)
		}
		answer.Write(w, refusal)
		return
	}
	access.AdmissionOf(req.Context()).Proven()
	if t.Verb == "watch" { // the cloud would end it when the credentials are no longer valid
		ctx, done := d.Authorizer.Judge.While(req.Context(), req.Header)
		defer done()
		if d.Authorizer.Cloud.Unknown() { // and may not grant it
			var end context.CancelFunc
			ctx, end = context.WithTimeout(ctx, uplink.DoubtfulWatch)
			defer end()
		}
		req = req.WithContext(ctx)
	}
	req = req.WithContext(context.WithValue(req.Context(), callerKey{}, called{who, t}))
	r := t.Relay
	switch version, _ := strconv.ParseUint(t.Query.Get("resourceVersion"), 10, 64); {
	case t.GoesOn() && r.CameAfter(version): // its client read the cloud until now, and the cloud remembers more
		d.fallback(w, req)
		return
	case version > 0 && (t.Verb != "watch" || t.IsTrue("sendInitialEvents")):
		d.Consistency.Ahead(t, version)
	case t.Query.Get("resourceVersion") == "" && t.Query.Get("continue") == "" && !d.Consistency.Current(req.Context(), t):
		d.behind(w, req, who, t)
		return
	}
	if age, ok := d.Consistency.Age(r); ok && r.Status().Synced {
		w.Header().Set(contract.AgeHeader, strconv.FormatInt(int64(age.Seconds()), 10))
	}
	(&rest.Handler{Source: r, Fallback: http.HandlerFunc(d.fallback), Alone: d.Gate.Away, Logger: d.Logger}).Serve(
		w, req, t.Request)
}

// behind answers a read that its relay cannot answer yet.
func (d *Door) behind(w *answer.Recorder, req *http.Request, who access.Caller, t *relayed.Target) {
	done, refusal := d.Consistency.Pass(t)
	if refusal != nil {
		answer.Write(w, refusal)
		return
	}
	defer done()
	w.Route = "cloud"
	d.Proxy.Serve(w, req, t.Request, who, t)
}

// fallback answers what a relay cannot answer truthfully: the cloud does.
func (d *Door) fallback(w http.ResponseWriter, req *http.Request) {
	c, ok := req.Context().Value(callerKey{}).(called)
	if !ok { // nobody is known to ask
		answer.Write(w, apierrors.NewUnauthorized("no caller"))
		return
	}
	if rec, ok := w.(*answer.Recorder); ok {
		rec.Route = "cloud"
	}
	w.Header().Del(contract.AgeHeader)
	d.Proxy.Serve(w, req, c.target.Request, c.who, c.target)
}
