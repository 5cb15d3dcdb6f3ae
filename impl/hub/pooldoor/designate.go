package pooldoor

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/role"
)

// ParseAll reads leader hubs as flags give them: node=IP:port.
func ParseAll(all []string) (leaders []directory.Leader, err error) {
	if len(all) > directory.MaxLeaders {
		return nil, fmt.Errorf("%d leader hubs, want %d at most", len(all), directory.MaxLeaders)
	}
	for _, s := range all {
		node, address, ok := strings.Cut(s, "=")
		at, reverse, err := contract.ParsePoolAddress(address)
		if !ok || err != nil || reverse || len(validation.IsDNS1123Subdomain(node)) > 0 {
			return nil,
				fmt.Errorf("%.100q: want the name of a node, and the IP address and port at which its hub shows its relays, as "+
					"in edge-1=10.0.0.7:%d", s, contract.HubPoolPort)
		}
		if slices.ContainsFunc(leaders, func(l directory.Leader) bool { return l.Node == node || l.Addresses[0] == at }) {
			return nil, fmt.Errorf("%q: want each leader hub, and each address, once", s)
		}
		leaders = append(leaders, directory.Leader{Node: node, Addresses: []netip.AddrPort{at}})
	}
	return leaders, nil
}

// Designate tells who feeds a pool, and where this node asks: at the replicas of its coordinator, or at the leader hubs
// but itself. A leader hub has several addresses if it has two families of them; the first one is asked.
func Designate(node string, told directory.Entry) (role.Designation, []coordinator.Server) {
	if told.Mode != contract.ModeLeaderHubs {
		return role.Elected, coordinator.At(told.URLs()...)
	}
	by, others := role.Others, []coordinator.Server{}
	for _, l := range told.Leaders {
		if l.Node == node {
			by = role.Mine
		} else if len(l.Addresses) > 0 {
			others = append(others, coordinator.Server{
				URL: &url.URL{Scheme: "https", Host: l.Addresses[0].String()}, Node: l.Node,
			})
		}
	}
	return by, others
}
