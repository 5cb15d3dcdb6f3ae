package membership

import (
	"net/netip"
	"testing"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
)

// TestSame: a hub goes somewhere else when the mode changes, or where the pool is asked in its mode, and for nothing
// else that it is told.
func TestSame(t *testing.T) {
	leader := []directory.Leader{{Node: "edge-1", Addresses: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:10269")}}}
	a := directory.Entry{
		Version: 7, Mode: contract.ModeCoordinator, Coordinators: []string{"https://10.0.0.7:10270"}, Connected: true,
	}
	with := func(change func(*directory.Entry)) directory.Entry {
		e := a
		change(&e)
		return e
	}
	named := with(func(e *directory.Entry) { e.Mode, e.Leaders = contract.ModeLeaderHubs, leader })
	for about, c := range map[string]struct {
		a, b directory.Entry
		same bool
	}{
		"nothing":     {a, a, true},
		"the version": {a, with(func(e *directory.Entry) { e.Version = 8 }), true},
		"what is shared": {
			a, with(func(e *directory.Entry) { e.Scope = []directory.Shared{{Version: "v1", Resource: "pods"}} }), true,
		},
		"leaders that nobody reads": {a, with(func(e *directory.Entry) { e.Leaders = leader }), true},
		"the mode":                  {with(func(e *directory.Entry) { e.Leaders = leader }), named, false},
		"the coordinator": {
			a, with(func(e *directory.Entry) { e.Coordinators = []string{"https://10.0.0.8:10270"} }), false,
		},
		"the leaders": {named, with(func(e *directory.Entry) { e.Mode = contract.ModeLeaderHubs }), false},
	} {
		if same(c.a, c.b) != c.same || same(c.b, c.a) != c.same {
			t.Errorf("%s changes: want the same %t", about, c.same)
		}
	}
}
