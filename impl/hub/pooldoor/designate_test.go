package pooldoor

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/role"
)

// TestDesignate: the mode alone says whom a hub asks. A leader hub asks the others, and not itself.
func TestDesignate(t *testing.T) {
	told := directory.Entry{
		Mode: contract.ModeCoordinator, Coordinators: []string{"https://10.0.0.7:10270"}, Leaders: []directory.Leader{
			{
				Node: "edge-1", Addresses: []netip.AddrPort{
					netip.MustParseAddrPort("10.0.0.1:10269"), netip.MustParseAddrPort("[fd00::1]:10269"),
				},
			},
			{Node: "edge-2", Addresses: []netip.AddrPort{netip.MustParseAddrPort("[fd00::2]:10269")}},
		},
	}
	for _, c := range []struct {
		mode, node string
		by         role.Designation
		asks       []string
	}{
		{contract.ModeCoordinator, "edge-1", role.Elected, []string{" https://10.0.0.7:10270"}},
		{"", "edge-1", role.Elected, []string{" https://10.0.0.7:10270"}},
		{contract.ModeLeaderHubs, "edge-1", role.Mine, []string{"edge-2 https://[fd00::2]:10269"}},
		{
			contract.ModeLeaderHubs, "edge-3", role.Others, []string{
				"edge-1 https://10.0.0.1:10269", "edge-2 https://[fd00::2]:10269",
			},
		},
	} {
		told.Mode = c.mode
		by, servers := Designate(c.node, told)
		asks := []string{}
		for _, s := range servers {
			asks = append(asks, s.Node+" "+s.URL.String())
		}
		if by != c.by || !slices.Equal(asks, c.asks) {
			t.Errorf("%s, %q: %v, asks %q", c.node, c.mode, by, asks)
		}
	}
}
