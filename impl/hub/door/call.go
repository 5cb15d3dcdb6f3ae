package door

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// call is a request on its way through the door: it is parsed once, its caller is identified once, and it is decided
// once who answers it. Whoever judges, answers or keeps it takes what stands here.
type call struct {
	*Door
	asked     *request.Request
	who       access.Caller
	w         *answer.Recorder
	req       *http.Request
	admission *access.Admission
	decision
}

// How long a client waits for a relay that has just begun: what it would list itself takes as long. Nobody feeds the
// relay while it is not known who leads the pool, and nobody can while cloud and pool are away.
const (
	joinPatience      = 10 * time.Second
	joinPatienceUnfed = 3 * time.Second
	joinPatienceAway  = time.Second
)

// joins has the pool share what a client begins to read of the whole cluster, and reports whether a relay can answer.
func (c *call) joins() bool {
	if c.target != nil || c.lost != nil && !c.lost.Relay.Status().Joins || !joinable(c.asked, c.Node) ||
		c.req.Header.Get(contract.ConsistentHeader) == "true" {
		return false
	}
	name := c.asked.Resource.String()
	if !c.Scope.May(name) {
		return false
	}
	rights, _ := identity.AttributesOf(c.asked)
	if c.Authorizer.Authorize(c.req.Context(), c.who, c.req.Header, rights) != nil {
		return false // the cloud says that
	}
	r, done := c.Scope.Read(name)
	defer done()
	if r == nil || c.asked.GoesOn() { // the cloud remembers more; over ends it when the relay can go on with it
		return false
	}
	f := c.Sources.Of(r)
	if f == nil { // it has just gone
		return false
	}
	began := func(until time.Duration) bool { // in the life of the relay: who comes later does not wait in vain again
		ctx, end := context.WithTimeout(c.req.Context(), until-f.Age())
		defer end()
		return r.WaitUntil(ctx, func() bool { return !r.Status().Joins || r.Denied() != nil }) == nil
	}
	first := joinPatienceUnfed
	if c.Gate.Away() {
		first = joinPatienceAway
	}
	if !began(first) && f.Status().Upstream != "" && !c.Gate.Away() {
		began(joinPatience)
	}
	c.target, c.lost = c.route(c.req.Header, c.asked, c.who)
	return c.target != nil
}

// read serves a get, list or watch of a relayed resource.
func (c *call) read() {
	t, r := c.target, c.target.Relay
	if refusal := c.Authorizer.Authorize(c.req.Context(), c.who, c.req.Header, t.Rights); refusal != nil {
		if refusal.ErrStatus.Code == http.StatusServiceUnavailable && c.admission.Unproven() {
			// why names addresses.
			refusal = answer.Unavailable(access.ErrUnavailable.Error() + ", and nothing is remembered of it")
		}
		if t.GoesOn() {
			refusal = answer.ComeAgain(refusal)
		}
		answer.Write(c.w, refusal)
		return
	}
	c.admission.Proven()
	name := r.Resource().String()
	defer c.Demand.Relayed(name)()
	_, done := c.Scope.Read(name)
	defer done()
	if t.Verb == "watch" { // the cloud would end it when the credentials are no longer valid
		ctx, done := c.Authorizer.Judge.While(c.req.Context(), c.req.Header)
		defer done()
		if c.Authorizer.Cloud.Unknown() { // and may not grant it
			var end context.CancelFunc
			ctx, end = context.WithTimeout(ctx, uplink.DoubtfulWatch)
			defer end()
		}
		c.req = c.req.WithContext(ctx)
	}
	switch version, _ := strconv.ParseUint(t.Query.Get("resourceVersion"), 10, 64); {
	case t.GoesOn() && r.CameAfter(version): // its client read the cloud until now, and the cloud remembers more
		c.fallback(c.w, c.req)
		return
	case version > 0 && (t.Verb != "watch" || t.IsTrue("sendInitialEvents")):
		c.Consistency.Ahead(t, version)
	case t.Query.Get("resourceVersion") == "" && t.Query.Get("continue") == "" &&
		!c.Consistency.Current(c.req.Context(), t):
		c.behind()
		return
	}
	if age, ok := c.Consistency.Age(r); ok && r.Status().Synced {
		c.w.Header().Set(contract.AgeHeader, strconv.FormatInt(int64(age.Seconds()), 10))
	}
	(&rest.Handler{
		Source: r, Fallback: http.HandlerFunc(c.fallback), Alone: c.Gate.Away, Overlay: c.Overlay.Over(r), Logger: c.Logger,
	}).Serve(c.w, c.req, t.Request)
}

// behind answers a read that its relay cannot answer yet.
func (c *call) behind() {
	done, refusal := c.Consistency.Pass(c.target)
	if refusal != nil {
		answer.Write(c.w, refusal)
		return
	}
	defer done()
	c.fallback(c.w, c.req)
}

// fallback answers what a relay cannot answer truthfully: the cloud does.
func (c *call) fallback(w http.ResponseWriter, req *http.Request) {
	c.w.Route = "cloud"
	w.Header().Del(contract.AgeHeader)
	c.Proxy.Serve(w, req, Passage{Asked: c.asked, Who: c.who, Target: c.target})
}

// over ends a watch that the cloud gives when a relay can go on with it: the relay had nothing to answer with when the
// watch began, or the resource was in no relay then. The client watches on, at the version that it has seen, and is
// answered by the relay. nil: no relay is to.
func (c *call) over() answer.Over {
	if c.asked.Verb != "watch" || c.req.Header.Get(contract.ConsistentHeader) != "" {
		return nil
	}
	inOrder := c.asked.GoesOn()
	return func(shown func() *wire.Event) bool {
		if !inOrder { // the objects that a watch begins with come in no order
			ev := shown()
			inOrder = ev != nil && ev.Type != wire.Added && ev.Type != wire.Error
			return false
		}
		t, _ := c.route(c.req.Header, c.asked, c.who)
		if t == nil || !t.Relay.Status().Synced {
			return false
		}
		ev := shown()
		return ev != nil && ev.Type != wire.Error && t.Relay.Resumable(ev.Version)
	}
}
