package uplink

import (
	"net/http"
	"net/url"

	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Upstream feeds relays from the cloud, as the hub itself. Questions go by the connection of probes.
func (k *Cloud) Upstream(onBytes func(int)) *hop.Upstream {
	way := func(c Class, over protocol) *http.Client { return Client(k.doors[doorKey{c, AsHub, over}]) }
	return &hop.Upstream{
		Name: role.Cloud.String(), URL: &url.URL{Scheme: "https", Host: "cloud"}, Gzip: true, Consistent: true,
		OnBytes: onBytes,
		Client:  way(ClassPool, overHTTP2), Aside: way(ClassPool, overNarrow), Ask: way(ClassControl, overHTTP2),
		Silent:  k.late.Load,
		Arrived: func() int64 { return k.Bytes(ClassPool).Down + k.Bytes(ClassControl).Down },
	}
}

// Client makes a client that follows no redirect.
func Client(rt http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
