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
	feeding            func(fromCloud bool)
	feeders            []*feeder
	cloud, coordinator *source.Upstream
}

func (s *sources) use(from role.Source) {
	s.feeding(from == role.Cloud)
	up := map[role.Source]*source.Upstream{role.Cloud: s.cloud, role.Coordinator: s.coordinator}[from]
	for _, f := range s.feeders {
		f.Use(up)
	}
}

// cloudUpstream feeds relays from the cloud, as the hub itself.
func cloudUpstream(rt http.RoundTripper, m *metrics) *source.Upstream {
	return &source.Upstream{
		Name: role.Cloud.String(), URL: &url.URL{Scheme: "https", Host: "cloud"}, Client: client(rt), Gzip: true, OnBytes: m.body(role.Cloud),
	}
}

// coordinatorUpstream feeds relays from the pool's coordinator, and is where a leader pushes to.
func coordinatorUpstream(c *coordinator, m *metrics) *source.Upstream {
	return &source.Upstream{
		Name: role.Coordinator.String(), URL: c.url, Client: client(c.transport), Progress: true, OnBytes: m.body(role.Coordinator),
	}
}

func client(rt http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
