package hub

import (
	"net/http"

	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/tunnel"
)

// links are the ways to the cloud and to the pool's coordinator.
type links struct {
	cloud       *uplink.Cloud
	coordinator *coordinator.Client // nil: there is none
	late        *pki.Allowance      // for certificates of the pool that have ended; nil: there is no pool
	discovery   *pooldoor.Discovery // what the pool has one copy of beside relays
	asNode      http.RoundTripper   // to the cloud, of what this node's own certificate asks
}

// newLinks makes ways that nobody has gone yet.
func newLinks(self *membership.Member, m *machine, t told, c *credentials) links {
	var l links
	cc := uplink.CloudConfig{
		NodeName: m.NodeName, Net: m.Net, Servers: m.servers, Kubeconfig: c.kubeconfig, Proxy: tunnel.FromEnvironment(),
		Policy: m.policy(), Roots: c.roots, Node: c.node, Hub: c.atCloud, NodeShows: c.shows,
		Leads: m.EnableCoordinator, Time: m.time, Clock: m.clock, Logger: m.Logger,
	}
	if c.shows != nil {
		cc.HubShows = c.atCloud
	}
	if m.EnableCoordinator {
		board := t.board()
		cc.Forward, cc.Rests = c.forward, func() bool { return self.Follows() && board.Rests(m.clock.Now()) }
	}
	cloud := uplink.NewCloud(cc)
	l.cloud = cloud
	c.atCloud.Follow(func() { cloud.RenewAs(uplink.AsHub) })
	if u, ok := c.node.(*uplink.User); ok {
		u.Follow(func() { cloud.RenewAs(uplink.AsNode) })
	}
	if m.EnableCoordinator {
		c.forward.Follow(func() { cloud.RenewAs(uplink.AsForwarder) })
		l.meet(self, m, t, c)
	}
	l.discovery = pooldoor.NewDiscovery(pooldoor.DiscoveryConfig{
		Coordinator: l.coordinator, Cloud: l.cloud.Way(uplink.ClassPool, uplink.AsHub),
		Forged: m.metrics.forged.WithLabelValues().Inc, Clock: m.clock, Logger: m.Logger,
	})
	l.asNode = l.discovery.Through(l.cloud.Way(uplink.ClassNode, uplink.AsNode))
	return l
}

// meet makes the way to the coordinator.
func (l *links) meet(self *membership.Member, m *machine, t told, c *credentials) {
	cloud := l.cloud
	l.late = &pki.Allowance{
		Time: m.time, Cloud: func() bool { return cloud.Reach() != member.CloudAway }, For: t.allowance,
		Refuse: t.denied.Refuse, Logger: m.Logger,
	}
	m.metrics.registry.MustRegister(l.late.Collector())
	cc := coordinator.Config{
		Net: m.Net, Servers: coordinator.At(m.coordinators...), Node: m.NodeName, Pool: m.NodePoolName, Policy: m.policy(),
		Roots: t.trusted, Denied: t.denied, Late: l.late, Cert: c.member, OnBytes: m.metrics.body(role.Coordinator),
		Leads: self.Leads, Moved: self.Changed, Address: m.PoolAddress, Clock: m.clock, Logger: m.Logger,
		Refused: func() { // it may have a sign of the cloud that this hub has not
			if c.member.Hurry() {
				cloud.Ask()
			}
		},
	}
	if m.atPool != nil {
		cc.Listens = m.atPool.Addr()
	}
	l.coordinator = coordinator.New(cc)
}
