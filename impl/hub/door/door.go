package door

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/request"
)

// ServeHTTP implements http.Handler.
func (d *Door) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	// as kube-apiserver with --shutdown-send-retry-after: clients try again, elsewhere if they can, and do not list.
	if d.closing.Load() {
		w.Header().Set("Connection", "close")
		answer.Write(w, apierrors.NewTooManyRequests("the hub is about to end", 1))
		return
	}
	c := &call{Door: d}
	if refusal := illFormed(req); refusal != nil {
		c.begin(w, req)
		defer c.end()
		c.refuse(refusal)
		return
	}
	c.asked = request.Parse(req)
	d.Filters.Serve(w, req, c.asked, c.identify)
}

// identify finds out who calls. What this node asks for itself may be altered for it.
func (c *call) identify(w http.ResponseWriter, req *http.Request) {
	clean(req.Header)
	req, who, done := c.Shelter.Admit(req, c.Identifier.Identify(req))
	defer done()
	if c.who = who; who.Kind == access.ThisNode && !access.Impersonates(req.Header) {
		c.Own.Serve(w, req, c.asked, c.answer)
		return
	}
	c.answer(w, req)
}

// begin and end are those of the answer.
func (c *call) begin(w http.ResponseWriter, req *http.Request) { c.w, c.req = c.Stalls.Record(w), req }

func (c *call) end() {
	c.Answered(c.w)
	c.Stalls.Forget(c.w)
}

// answer answers a request of a caller who is known.
func (c *call) answer(w http.ResponseWriter, req *http.Request) {
	c.begin(w, req)
	defer c.end() // also when a broken stream panics its way out
	var refusal *apierrors.StatusError
	c.req, c.admission, refusal = c.Gate.Admit(c.w, req, c.asked, c.who, c.Authorizer.Judge.Refused(req.Header))
	if refusal != nil {
		c.refuse(refusal)
		return
	}
	defer c.admission.Leave()
	defer c.w.Finish(c.req)
	switch c.decision = c.decide(c.req, c.asked, c.who); c.way {
	case mistaken:
		answer.Write(c.w, c.refusal)
	case refused:
		c.admission.Slow()
		c.refuse(c.refusal)
	case byRelay:
		c.w.Route = answer.ByRelay
		c.read()
	case byBeats:
		c.Beats.Serve(c.w, c.req, c.asked)
	case byCloud:
		if c.joins() {
			c.w.Route = answer.ByRelay
			c.read()
		} else {
			c.pass()
		}
	}
}

// refuse answers a request for which nothing was done. As long as its client does not take the answer the hub holds all
// that was sent; so beyond a bound there is no answer: the stream ends, over HTTP/1.1 the connection.
func (c *call) refuse(refusal *apierrors.StatusError) {
	c.w.Route = "refused"
	address := access.AddressOf(c.req)
	if c.Gate.Refusals.Enter(address) != "" {
		c.w.Code = int(refusal.ErrStatus.Code)
		panic(http.ErrAbortHandler)
	}
	defer c.Gate.Refusals.Leave(address)
	answer.Write(c.w, refusal)
	c.w.Finish(c.req)
}

// pass has the cloud answer, or what stands in for it: the node's kubelet, the queue of writes, the store.
func (c *call) pass() {
	req, taken := c.Proxy.Kubelet.Take(c.w, c.req, c.asked, c.who)
	if !taken {
		req, taken = c.Shelter.Take(c.w, req, c.asked, c.who)
	}
	if !taken {
		c.w.Route = "cloud"
		c.Proxy.Serve(c.w, req, Passage{Asked: c.asked, Who: c.who, Target: c.target, Over: c.over()})
	}
	if c.lost != nil && c.w.Code == http.StatusOK {
		c.lost.Found()
	}
}
