package runtime

import (
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/testca"
)

var _ Movable = (*localSite)(nil)

// hubFiles are the flags of a hub, and where they are written.
type hubFiles struct {
	dir    string
	config parts.HubConfig
}

// Move implements Movable. The node stays behind the uplink that it has.
func (s *localSite) Move(name, pool string) error {
	x, err := s.poolOf(name)
	if err != nil {
		return err
	}
	to, h := s.pool(pool), x.hubs[name]
	if to == nil || h.dir == "" {
		return fmt.Errorf("node %s cannot move to pool %q: there is no such pool, or no hub", name, pool)
	}
	if x.lan != nil || to.lan != nil || slices.Contains([]Mode{Stock, HubOnly}, to.Mode) || !x.Enrols || !to.Enrols {
		return fmt.Errorf("node %s cannot move to pool %s: want both to enrol, a coordinator, and no network to cut", name,
			pool)
	}
	c := h.config
	c.NodePool, c.CoordinatorServers = pool, nil
	for i := range to.CoordinatorIDs() {
		host, err := to.coordinatorHost(i)
		if err != nil {
			return err
		}
		c.CoordinatorServers = append(c.CoordinatorServers,
			"https://"+net.JoinHostPort(host, strconv.Itoa(contract.CoordinatorPort)))
	}
	if _, err = testca.WriteFile(h.dir, parts.PoolCAFile, to.authority.CertPEM()); err != nil {
		return err
	}
	_, err = c.Write(h.dir)
	return err
}
