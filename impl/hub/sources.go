package hub

import (
	"net/http"
	"net/url"

	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
)

// feeder is the feeder of one relay.
type feeder struct {
	*source.Feeder
	resource string
}

// sources points all feeders to the upstream that the role machine chose.
type sources struct {
	feeding     func(fromCloud bool)
	feeders     []*feeder
	cloud       *source.Upstream
	coordinator *coordinator // nil: none
}

// use is called again when another replica of the coordinator is used.
func (s *sources) use(from role.Source) {
	s.feeding(from == role.Cloud)
	var up *source.Upstream
	switch from {
	case role.Cloud:
		up = s.cloud
	case role.Coordinator:
		up = s.coordinator.inUse().upstream
	}
	for _, f := range s.feeders {
		f.Use(up)
	}
}

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
		Client: client(k.doors[doorKey{classPool, asHub, false}]), Ask: client(k.doors[doorKey{classControl, asHub, false}]),
		Arrived: func() int64 { return k.meters[classPool].read.Load() + k.meters[classControl].read.Load() },
	}
}

// coordinatorUpstream feeds relays from a replica of the pool's coordinator, and is where a leader pushes to.
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
