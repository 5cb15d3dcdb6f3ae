// Package feeder feeds the relays of a hub, each from the cloud or from the pool's coordinator, as the hub's part in the pool has it.
//
// A Feeder is package source's, with what a hub has to know beside it: whether the relay has anything to answer with, and whether the coordinator has the
// resource at all. Sources points all of them. New starts nothing; source.Feeder.Run blocks until its context ends.
package feeder

import (
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Feeder is the feeder of one relay.
type Feeder struct {
	*source.Feeder
	Relay    *relay.Relay
	Resource string
	clock    clock.PassiveClock
	looks    func()
	refused  atomic.Pointer[time.Time] // when the coordinator said that it does not have the resource; nil: it did not
}

// New makes a feeder. looks is called when a source has said that it does not give the resource.
func New(c source.Config, looks func()) (*Feeder, error) {
	f := &Feeder{Relay: c.Relay, Resource: c.Relay.Resource().String(), clock: c.Clock, looks: looks}
	c.Denied = f.denied
	var err error
	f.Feeder, err = source.NewFeeder(c)
	return f, err
}

// denied takes the answer of an upstream that does not have the resource, or does not give it. The coordinator's word
// is not the last one: there is the cloud to ask, and until that has answered, the relay goes on with what it holds.
func (f *Feeder) denied(up *hop.Upstream, why error) {
	if up.Consistent {
		f.Relay.Deny(why)
	} else {
		now := f.clock.Now()
		f.refused.Store(&now)
	}
	f.looks()
}

// Lacked tells whether the coordinator does not have the resource, as far as it has said.
func (f *Feeder) Lacked() bool {
	at := f.refused.Load()
	return at != nil && !f.Relay.Status().ProgressAt.After(*at)
}

// Unavailable tells whether the relay has nothing to answer with, and will not have soon: nobody whom it was fed by
// gives it the resource. Then the cloud answers each request by itself.
func (f *Feeder) Unavailable() bool {
	s := f.Relay.Status()
	return s.Denied != "" || !s.Synced && (f.Lacked() || f.broken())
}

// broken tells whether the cloud answers lists of the resource by an error, as it does for a custom resource that it
// cannot convert. One that is only busy is not asked more.
func (f *Feeder) broken() bool {
	s := f.Status()
	return s.Upstream == role.Cloud.String() && s.LastError != "" && s.Answer != 0 && s.Answer != http.StatusTooManyRequests
}

// Found takes that the cloud answered a client about the resource: if it had said that there is none, it has changed
// its mind.
func (f *Feeder) Found() {
	if why := f.Relay.Denied(); why != nil && why.ErrStatus.Code == http.StatusNotFound {
		f.Kick()
	}
}

// AskAnew forgets that the coordinator said that it does not have the resource.
func (f *Feeder) AskAnew() { f.refused.Store(nil) }

// Sources points all feeders to the upstreams that were chosen for them.
type Sources struct {
	Feeding     func(fromCloud bool) // told whether any is fed from the cloud
	Feeders     []*Feeder
	Cloud       *hop.Upstream
	Coordinator func() *hop.Upstream // the replica that is used now; nil: there is no pool
}

// Use is called again when another replica of the coordinator is used. from is of each feeder.
func (s *Sources) Use(from []role.Source) {
	s.Feeding(slices.Contains(from, role.Cloud))
	for i, f := range s.Feeders {
		switch from[i] {
		case role.Cloud:
			f.Use(s.Cloud)
		case role.Coordinator:
			f.Use(s.Coordinator())
		case role.Nowhere:
			f.Use(nil)
		}
	}
}

// Alone feeds all from the cloud: there is no pool.
func (s *Sources) Alone() { s.Use(slices.Repeat([]role.Source{role.Cloud}, len(s.Feeders))) }

// Retry ends the pauses of feeders that failed: a server answers again.
func (s *Sources) Retry() {
	for _, f := range s.Feeders {
		f.Kick()
	}
}
