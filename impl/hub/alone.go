package hub

import (
	"iter"
	"math/rand/v2"
	"path/filepath"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/overlay"
	"github.com/weir-edge/weir/impl/hub/shelter"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/store"
)

// alone is what a hub has for the time without the cloud.
type alone struct {
	store   *store.Store
	judge   *identity.Judge // of callers
	shelter *shelter.Shelter
}

// openAlone opens what is kept for the time without the cloud, and puts it beside the way there.
func openAlone(m *machine, t told, c *credentials, l links, s *shared) (a alone, err error) {
	sc := m.Storage.config(m.DataDir)
	sc.Clock, sc.Key, sc.Logger = m.clock, m.key, m.Logger
	if a.store, err = store.Open(sc); err != nil {
		return a, m.cannotKeep(err)
	}
	m.opened = append(m.opened, a.store.Close)
	review := access.Reviewer{AsCaller: l.cloud.Prove(), AsNode: l.cloud.Way(uplink.ClassNode, uplink.AsNode)}
	jc := identity.Config{
		Node: m.NodeName, Cloud: l.cloud.Way(uplink.ClassControl, uplink.AsHub),
		Callers: l.cloud.Way(uplink.ClassNode, uplink.AsCaller), File: filepath.Join(m.DataDir, "verdicts"),
		Allowance: m.OfflineTokenAllowance, TTL: m.OfflineAccess,
		Away: func() bool { away, _ := l.cloud.IsAway(); return away }, Unbroken: l.cloud.Unbroken, Ask: review.Ask,
		Documents: a.store, Now: m.time.Now, Pods: identity.PodsOf(a.store), Clock: m.clock, Logger: m.Logger,
	}
	if t.directory != nil {
		jc.Shared = l.discovery.SharedKeys
	}
	if a.judge, err = identity.New(jc); err != nil {
		return a, err
	}
	a.shelter, err = shelter.New(shelter.Config{
		Node: m.NodeName, Store: a.store, Judge: a.judge, Cloud: l.cloud, AsNode: l.asNode,
		Control: l.discovery.Through(l.cloud.Way(uplink.ClassControl, uplink.AsHub)), Shared: l.discovery.Fetch,
		NodeCounts: func() bool { return c.nodeCounts(m.time.Now) }, NodeStatusPeriod: m.NodeStatusPeriod,
		Spread: m.ReturnSpread, Seed: rand.Uint64(), Clock: m.clock, Logger: m.Logger,
	})
	if err == nil {
		s.sources.Follow(func(number uint64, _ bool) { a.shelter.History(number) })
	}
	return a, err
}

// newFilters makes what stands between answers and those clients that see something else; nil: all see what the cloud
// shows.
func newFilters(m *machine, l links, s *shared, over *overlay.Overlay) (*filter.Filters, error) {
	if len(m.Filters) == 0 {
		return nil, nil
	}
	c := m.filterConfig()
	c.Cloud, c.Clock, c.File = l.cloud.Way(uplink.ClassControl, uplink.AsHub), m.clock,
		filepath.Join(m.DataDir, "topology")
	c.Slices = func() (uint64, iter.Seq[*wire.Object]) {
		if f := s.sources.Named(contract.EndpointSlices + ".v1." + contract.DiscoveryGroup); f != nil {
			return f.Relay.Status().Version, over.Shown(f.Relay)
		}
		return 0, func(func(*wire.Object) bool) {}
	}
	return filter.New(c)
}
