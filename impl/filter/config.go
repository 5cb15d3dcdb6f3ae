package filter

import (
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/request"
)

// Names of the filters.
const (
	MasterService   = "masterservice"
	DiscardService  = "discardcloudservice"
	ServiceTopology = "servicetopology"
)

// Config says which filters are on.
type Config struct {
	// Enabled are names of filters, or name=component,component. Default none.
	Enabled []string
	// MasterService is host:port of the hub as pods see it; masterservice needs it.
	MasterService string
	// Node and Pool are this node's.
	Node, Pool string
	// Cloud sends requests as the hub.
	Cloud http.RoundTripper
	// Slices gives the EndpointSlices of a relay and its version; nil if they are not relayed.
	Slices func() (version uint64, all iter.Seq[*wire.Object])
	// File keeps what is known of topology, "" for no longer than the process lives.
	File string
	// Clock is for tests. Default the real one.
	Clock clock.Clock
	// Random spreads requests, from 0 to 1. Default math/rand.
	Random func() float64
	// Logger gets what an operator should know. Default slog.Default().
	Logger *slog.Logger
}

var (
	services   = request.Resource{Version: "v1", Name: "services"}
	slicesOf   = request.Resource{Group: "discovery.k8s.io", Version: "v1", Name: "endpointslices"}
	configMaps = request.Resource{Version: "v1", Name: "configmaps"}
)

func kindOf(r request.Resource) wire.Kind {
	switch r {
	case services:
		return wire.Kind{APIVersion: "v1", Kind: "Service"}
	case configMaps:
		return wire.Kind{APIVersion: "v1", Kind: "ConfigMap"}
	}
	return wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}
}

// Default components of the filters, as in OpenYurt.
func defaults() map[string][]string {
	return map[string][]string{
		MasterService:   {"kubelet"},
		DiscardService:  {"kube-proxy"},
		ServiceTopology: {"kube-proxy", "coredns", "nginx-ingress-controller"},
	}
}

// Validate tells which flag is invalid.
func (c Config) Validate() error {
	_, err := c.rules()
	return err
}

// use is what a component reads that is filtered.
type use struct {
	component string
	resource  request.Resource
}

func (c Config) rules() (map[use][]rule, error) {
	all := map[use][]rule{}
	var seen []string
	for _, e := range c.Enabled {
		name, list, given := strings.Cut(e, "=")
		components, ok := defaults()[name]
		if given {
			components = strings.Split(list, ",")
		}
		if !ok || slices.Contains(components, "") {
			return nil, fmt.Errorf("filter %q: want name or name=component,component, where name is one of %s, %s, %s", e,
				MasterService, DiscardService, ServiceTopology)
		}
		if slices.Contains(seen, name) {
			return nil, fmt.Errorf("filter %q: each name once", e)
		}
		seen = append(seen, name)
		for _, component := range components {
			switch name {
			case MasterService:
				r, err := newMaster(c.MasterService)
				if err != nil {
					return nil, err
				}
				all[use{component, services}] = append(all[use{component, services}], r)
			case DiscardService:
				all[use{component, services}] = append(all[use{component, services}], discard{})
			case ServiceTopology:
				all[use{component, services}] = append(all[use{component, services}], learn{})
				all[use{component, slicesOf}] = append(all[use{component, slicesOf}], near{})
			}
		}
	}
	return all, nil
}

func newMaster(address string) (m master, err error) {
	host, port, err := net.SplitHostPort(address)
	n, portErr := strconv.ParseUint(port, 10, 16)
	if err != nil || portErr != nil || n == 0 || net.ParseIP(host) == nil {
		return m, fmt.Errorf("filter %s: it needs the hub's address as pods see it, an IP address and a port: %q",
			MasterService, address)
	}
	return master{host, int(n)}, nil
}
