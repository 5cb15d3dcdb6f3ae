package hub

import (
	"net"
	"slices"

	"github.com/weir-edge/weir/impl/hub/nodeauthority"
)

// ownsAuthority reports whether the hub's certificate comes from its node's own authority.
func (s *settings) ownsAuthority() bool { return !s.serves }

// hosts are all addresses and names of the hub's certificate.
func (s *settings) hosts() []string {
	master, _, _ := net.SplitHostPort(s.MasterServiceAddress)
	return nodeauthority.Hosts(s.BindAddress, slices.Concat(s.TLSHosts, []string{s.NodeName, master, s.PodsAddress})...)
}
