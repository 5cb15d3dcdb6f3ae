package door

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/request"
)

// way is who answers a request that has passed the gate.
type way uint8

// The ways.
const (
	mistaken way = iota // the door: what is asked means nothing
	refused             // the door: its caller has used up its share
	byRelay             // a relay
	byBeats             // the hub itself: it is a heartbeat of this node
	byCloud             // the cloud, or what stands in for it
)

// decision is how a request is answered.
type decision struct {
	way
	refusal *apierrors.StatusError // if it is mistaken or refused
	target  *relayed.Target        // the object or collection of a relayed resource that it is about; nil: none
	lost    *relayed.Feeder        // feeds its relay, and is not given the resource; nil: none
}

// decide decides how a request is answered. Nothing is done for it yet.
func (d *Door) decide(req *http.Request, asked *request.Request, who access.Caller) (to decision) {
	to.target, to.lost = d.route(req.Header, asked, who)
	consistent := req.Header.Get(contract.ConsistentHeader)
	switch {
	case consistent != "" && consistent != "true" && consistent != "false":
		to.way, to.refusal = mistaken, apierrors.NewBadRequest(
			fmt.Sprintf("header %s: %q: want true or false", contract.ConsistentHeader, consistent))
	case to.target != nil && !to.target.Writes() && consistent != "true":
		to.way = byRelay
	case who.Kind == access.ThisNode && d.Beats.Own(req.Header, asked):
		to.way = byBeats
	default:
		if to.way, to.refusal = byCloud, d.Gate.Passes(req, who); to.refusal != nil {
			to.way = refused
		}
	}
	return to
}

// route finds the relay that is to answer. If that is not given the resource, the request is the cloud's to answer;
// lost is what feeds the relay.
func (d *Door) route(header http.Header, asked *request.Request, who access.Caller) (t *relayed.Target,
	lost *relayed.Feeder) {
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
