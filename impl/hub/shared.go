package hub

import (
	"path/filepath"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/togate"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/snapshot"
	"github.com/weir-edge/weir/impl/source/hop"
)

// shared is what the hub has of what its pool shares.
type shared struct {
	reads       *door.Demand     // of clients of this node
	sources     *relayed.Sources // what is relayed
	gate        *togate.Gate     // where that is read in the cloud, if there is one; nil: there is no pool
	wayIn       *togate.WayIn    // by which the cloud reaches into the pool; nil likewise
	consistency *relayed.Consistency
	kept        *snapshot.Snapshots
	scope       *scope.Scope // what may be relayed
}

// newShared brings back what the relays held before, and keeps what they hold from now on. It begins with what was read
// here before the restart, of what the pool was last told to share, or else of what flags name.
func newShared(self *membership.Member, m *machine, t told, c *credentials, l links) (*shared, error) {
	s := &shared{reads: door.NewDemand(m.NodeName, m.clock), sources: &relayed.Sources{
		Made: relayed.Made{
			Member: self, There: l.cloud.Healthy, RingAge: m.RingAge, WatchTimeout: m.UpstreamWatchTimeout, Clock: m.clock,
			Logger: m.Logger,
		},
		Feeding: l.cloud.Feeds, Cloud: l.cloud.Upstream(m.metrics.body(role.Cloud)),
		Coordinator: func() *hop.Upstream { return l.coordinator.InUse().Upstream },
	}}
	first := m.resources
	if board := t.board(); board != nil {
		first = scope.Of(t.directory.Now())
		s.gate = togate.New(togate.Config{
			Cloud: l.cloud, Directory: t.directory, Sources: s.sources, Cert: c.atCloud, OnBytes: m.metrics.body(role.Cloud),
			Net: m.Net, Spread: member.GateSpread, Clock: m.clock, Logger: m.Logger,
		})
		s.wayIn = togate.NewWayIn(togate.WayInConfig{
			Node: m.NodeName, Pool: m.NodePoolName, Leads: self.Leads, Directory: t.directory, Cloud: l.cloud, Cert: c.atCloud,
			Net: m.Net, Clock: m.clock, Logger: m.Logger,
		})
		s.sources.Follow(func(_ uint64, byCloud bool) {
			if !byCloud {
				board.Reset()
			}
		})
	}
	s.consistency = relayed.NewConsistency(m.MaxStaleRead, l.cloud.Upstream(m.metrics.body(role.Cloud)), l.cloud, m.clock,
		func(about, outcome string) { m.metrics.questions.WithLabelValues(about, outcome).Inc() })
	s.sources.Follow(func(uint64, bool) { s.consistency.Reset() })
	in := filepath.Join(m.DataDir, "relays")
	for _, res := range scope.First(first, m.always, m.Linger, in) {
		f, err := s.sources.Make(res, false)
		if err != nil {
			return nil, err
		}
		s.sources.Add(f)
	}
	disk.TellOpen(m.Logger, m.CloudClientCertFile, m.etc(servingPair))
	err := disk.Make(m.DataDir)
	if err == nil {
		s.kept, err = snapshot.Open(snapshot.Config{Dir: in, Relays: s.sources.Relays(), Clock: m.clock, Logger: m.Logger})
	}
	if err != nil {
		return nil, m.cannotKeep(err)
	}
	m.opened = append(m.opened, s.kept.Close)
	m.metrics.registry.MustRegister(s.kept)
	s.scope = scope.New(scope.Config{
		Relays: relayed.Relays{
			Sources: s.sources, Kept: s.kept, Changed: self.Changed, Forget: s.consistency.Forget,
		},
		Directory: t.directory, Fixed: directory.SharedAll(m.resources), Always: m.always, Linger: m.Linger,
		Open:  s.reads.Open,
		Holds: func() bool { return l.cloud.Reach() == member.CloudAway },
		Find:  scope.Discovery{Cloud: l.cloud.Way(uplink.ClassControl, uplink.AsHub)}.Find,
		Clock: m.clock, Logger: m.Logger,
	})
	return s, nil
}
