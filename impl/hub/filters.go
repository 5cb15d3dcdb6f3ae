package hub

import (
	"iter"
	"path/filepath"
	"slices"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

func (s *settings) checkFilters() error {
	if err := s.filterConfig().Validate(); err != nil {
		return cli.Usage("--filters, --master-service-address", s.Filters, err.Error())
	}
	return nil
}

func (s *settings) filterConfig() filter.Config {
	return filter.Config{Enabled: s.Filters, MasterService: s.MasterServiceAddress, Node: s.NodeName, Pool: s.NodePoolName, Logger: s.Logger}
}

// buildFilters makes what stands between answers and those clients that see something else.
func (h *Hub) buildFilters() error {
	if len(h.Filters) == 0 {
		return nil
	}
	c := h.filterConfig()
	c.Cloud, c.Clock = h.door(classNode, asHub), h.clock
	if i := slices.IndexFunc(h.resources, func(r relay.Resource) bool {
		return r.Resource == contract.EndpointSlices && r.Group == contract.DiscoveryGroup
	}); i >= 0 {
		r := h.relays[i]
		c.Slices = func() (uint64, iter.Seq[*wire.Object]) { return r.Status().Version, r.Objects() }
	}
	if h.DataDir != "" {
		c.File = filepath.Join(h.DataDir, "topology")
	}
	f, err := filter.New(c)
	h.filters, h.front.filters = f, f
	return err
}
