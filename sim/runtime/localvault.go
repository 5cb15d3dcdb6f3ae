package runtime

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/testca"
)

// Vault is a Site that hands out what only the testbed has, for anyone who plays an attacker: keys that sign, and
// disks.
type Vault interface {
	// Cloud issues certificates of nodes, and knows the key that signs tokens.
	Cloud() *cloud.Cloud
	// Authority is the one of a pool: it signs for the coordinator, its callers, and the doors of hubs.
	Authority(pool string) (*testca.Authority, error)
	// Coordinator is where hubs of a pool look for their first coordinator, "host:port", whether it runs or not.
	Coordinator(pool string) (address string, err error)
	// Gate is where weir-gate listens, "host:port", and the authority that signs its certificate.
	Gate() (address string, authority *testca.Authority, err error)
	// Kept is the folder of what a part keeps, "" if it keeps nothing.
	Kept(id PartID) (folder string, err error)
	// Logs is the folder of the logs of all parts.
	Logs() string
}

var _ Vault = (*localSite)(nil)

func (s *localSite) Cloud() *cloud.Cloud { return s.cloud }

func (s *localSite) Logs() string { return s.logDir }

func (s *localSite) Authority(pool string) (*testca.Authority, error) {
	if p := s.pool(pool); p != nil {
		return p.authority, nil
	}
	return nil, fmt.Errorf("there is no pool %q", pool)
}

func (s *localSite) Coordinator(pool string) (string, error) {
	p := s.pool(pool)
	if p == nil {
		return "", fmt.Errorf("there is no pool %q", pool)
	}
	host, err := p.coordinatorHost(0)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(host, strconv.Itoa(contract.CoordinatorPort)), nil
}

func (s *localSite) Gate() (string, *testca.Authority, error) {
	if s.gate == nil {
		return "", nil, errors.New("the topology has no weir-gate")
	}
	return s.gate.address, s.gate.authority, nil
}

func (s *localSite) Kept(id PartID) (string, error) {
	part, err := s.Part(id)
	if err != nil {
		return "", err
	}
	if p, ok := part.(*parts.Part); ok {
		return p.Data(), nil
	}
	return "", nil
}
