package hub

import (
	"net"
	"slices"
)

// maxHosts is how many addresses and names the hub's certificate may have.
const maxHosts = 32

// ownHosts are the names at which this node's clients call the hub, whatever its address.
var ownHosts = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}

// ownsAuthority tells whether the hub's certificate comes from its node's own authority.
func (s *settings) ownsAuthority() bool { return s.TLSCertFile == "" && s.TLSPrivateKeyFile == "" }

// hosts are all addresses and names of the hub's certificate, those that were asked for first.
func (s *settings) hosts() []string {
	all := slices.Concat(s.TLSHosts, []string{s.NodeName}, ownHosts)
	if host, _, err := net.SplitHostPort(s.MasterServiceAddress); err == nil {
		all = append(all, host)
	}
	if ip := net.ParseIP(s.BindAddress); ip.IsUnspecified() {
		all = append(all, "127.0.0.1", "::1")
		addresses, _ := net.InterfaceAddrs() // what cannot be read now is in it later
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				all = append(all, n.IP.String())
			}
		}
	} else {
		all = append(all, ip.String())
	}
	unique := all[:0]
	for _, h := range all {
		if !slices.Contains(unique, h) {
			unique = append(unique, h)
		}
	}
	return unique[:min(len(unique), maxHosts)]
}
