package hub

import (
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
)

// feeder is the feeder of one relay.
type feeder struct {
	*source.Feeder
	relay    *relay.Relay
	resource string
	clock    clock.PassiveClock
	looks    func()                    // something changed
	refused  atomic.Pointer[time.Time] // when the coordinator said that it does not have the resource; nil: it did not
}

// denied takes the answer of an upstream that does not have the resource, or does not give it. The coordinator's word
// is not the last one: there is the cloud to ask, and until that has answered, the relay goes on with what it holds.
func (f *feeder) denied(up *source.Upstream, why error) {
	if up.Consistent {
		f.relay.Deny(why)
	} else {
		now := f.clock.Now()
		f.refused.Store(&now)
	}
	f.looks()
}

// lacked tells whether the coordinator does not have the resource, as far as it has said.
func (f *feeder) lacked() bool {
	at := f.refused.Load()
	return at != nil && !f.relay.Status().ProgressAt.After(*at)
}

// unavailable tells whether the relay has nothing to answer with, and will not have soon: nobody whom it was fed by
// gives it the resource. Then the cloud answers each request by itself.
func (f *feeder) unavailable() bool {
	s := f.relay.Status()
	return s.Denied != "" || !s.Synced && (f.lacked() || f.broken())
}

// broken tells whether the cloud answers lists of the resource by an error, as it does for a custom resource that it
// cannot convert. One that is only busy is not asked more.
func (f *feeder) broken() bool {
	s := f.Status()
	return s.Upstream == role.Cloud.String() && s.LastError != "" && s.Answer != 0 && s.Answer != http.StatusTooManyRequests
}

// found takes that the cloud answered a client about the resource: if it had said that there is none, it has changed
// its mind.
func (f *feeder) found() {
	if why := f.relay.Denied(); why != nil && why.ErrStatus.Code == http.StatusNotFound {
		f.Kick()
	}
}

// sources points all feeders to the upstreams that were chosen for them.
type sources struct {
	feeding     func(fromCloud bool)
	feeders     []*feeder
	cloud       *source.Upstream
	coordinator *coordinator // nil: none
}

// use is called again when another replica of the coordinator is used. from is of each feeder.
func (s *sources) use(from []role.Source) {
	s.feeding(slices.Contains(from, role.Cloud))
	for i, f := range s.feeders {
		switch from[i] {
		case role.Cloud:
			f.Use(s.cloud)
		case role.Coordinator:
			f.Use(s.coordinator.inUse().upstream)
		case role.Nowhere:
			f.Use(nil)
		}
	}
}

// alone feeds all from the cloud: there is no pool.
func (s *sources) alone() { s.use(slices.Repeat([]role.Source{role.Cloud}, len(s.feeders))) }

// retry ends the pauses of feeders that failed: a server answers again.
func (s *sources) retry() {
	for _, f := range s.feeders {
		f.Kick()
	}
}

// cloudUpstream feeds relays from the cloud, as the hub itself. Questions go by the connection of probes.
func cloudUpstream(k *cloud, m *metrics) *source.Upstream {
	return &source.Upstream{
		Name: role.Cloud.String(), URL: &url.URL{Scheme: "https", Host: "cloud"}, Gzip: true, Consistent: true, OnBytes: m.body(role.Cloud),
		Client: client(k.doors[doorKey{classPool, asHub, overHTTP2}]), Ask: client(k.doors[doorKey{classControl, asHub, overHTTP2}]),
		Aside:   client(k.doors[doorKey{classPool, asHub, overNarrow}]),
		Arrived: func() int64 { return k.meters[classPool].read.Load() + k.meters[classControl].read.Load() },
	}
}

// coordinatorUpstream feeds relays from a replica of the pool's coordinator.
func coordinatorUpstream(r *replica, onBytes func(int)) *source.Upstream {
	return &source.Upstream{
		Name: role.Coordinator.String(), URL: r.url, Client: client(r.transport), Progress: true, OnBytes: onBytes,
	}
}

func client(rt http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
