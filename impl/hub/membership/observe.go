package membership

import (
	"fmt"
	"math"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
)

// observe fills in the present state of what the member sees; news is put in by the loop.
func (p *Pool) observe(o *member.Observation) {
	o.Now = p.Clock.Now()
	o.Pool = p.checker.OK()
	o.Cloud = member.Cloud{Healthy: p.Cloud.Healthy(), Heard: p.Cloud.LastHeard(), Read: p.Cloud.Streamed()}
	o.Designated = role.Designation(p.designated.Load())
	use := p.Coordinator.InUse()
	o.Server, o.Node, o.Shown = fmt.Sprintf("%p", use), use.Node, p.Coordinator.Shown()
	o.Reader.Reads, o.Reader.Since = p.Read()
	denied, contradicted := p.heard()
	for _, c := range contradicted { // no other hub took that up either
		p.doubt.suspect(contract.Doubt{Leader: p.leader(), Resource: c.resource, Held: math.MaxInt64}, c.proof)
	}
	o.Denied, o.Doubted = denied, p.doubt.holds()
	feeders := p.Sources.All()
	o.Relays = make([]member.Relay, len(feeders))
	for i, f := range feeders {
		fed := f.Status()
		r := member.Relay{
			Name: f.Resource, Status: f.Relay.Status(), From: sourceOf(fed.Upstream), Since: fed.Since,
			Failing: fed.LastError != "", Refused: f.Lacked(),
		}
		if why := f.Relay.Denied(); why != nil {
			r.Code = why.ErrStatus.Code
		}
		o.Relays[i] = r
	}
	o.Idle = p.Idle()
}

// sourceOf is the source of a feeder by the name of its upstream.
func sourceOf(upstream string) role.Source {
	switch upstream {
	case role.Cloud.String(), source.Gate:
		return role.Cloud
	case role.Coordinator.String():
		return role.Coordinator
	}
	return role.Nowhere
}
