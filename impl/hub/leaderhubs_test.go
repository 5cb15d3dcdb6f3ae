package hub

import (
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/role"
)

// namedBed is a pool whose leader hubs are named. Each hub has a link to the cloud of its own.
type namedBed struct {
	*poolBed
	nodes []string
	links map[string]*cut
}

func newNamedBed(t *testing.T, nodes ...string) *namedBed {
	t.Helper()
	p := &namedBed{poolBed: newPoolBed(t, nodes...), nodes: nodes, links: map[string]*cut{}}
	for _, n := range nodes {
		p.links[n] = newCut(t, strings.TrimPrefix(p.clouds[0].url(), "https://"))
		c := &p.hubs[n].config
		c.FailoverGracePeriod = 30 * time.Second
		// until it is named, a hub has nobody to wait for: on a busy machine that takes a while.
		c.CoordinatorWait = time.Minute
		c.CloudServers, c.CoordinatorServers, c.LeaderHubs = []string{p.links[n].url()}, nil, []string{"edge-0=127.0.0.1:1"}
	}
	return p
}

// name tells hubs who leads, the leader hubs first: others go to the one that they prefer of those that are fresh.
func (p *namedBed) name(leaders ...string) {
	p.t.Helper()
	p.tell(leaders, leaders)
	p.leads(leaders...)
	p.tell(p.nodes, leaders)
}

func (p *namedBed) tell(nodes, leaders []string) {
	p.t.Helper()
	for _, n := range nodes {
		if h := p.hubs[n].hub; h != nil {
			h.pool.Follow(pooldoor.Designate(n, p.told(leaders...)))
		}
	}
}

func (p *namedBed) told(leaders ...string) directory.Entry {
	p.t.Helper()
	told := directory.Entry{Mode: contract.ModeLeaderHubs}
	for _, n := range leaders {
		at, err := netip.ParseAddrPort(p.hubs[n].hub.coordinator.Told())
		check(p.t, err)
		told.Leaders = append(told.Leaders, directory.Leader{Node: n, Addresses: []netip.AddrPort{at}})
	}
	return told
}

// reads waits until some hubs read one of some leader hubs.
func (p *namedBed) reads(followers []string, leaders ...string) {
	p.t.Helper()
	eventually(p.t, strings.Join(followers, ", ")+" to read one of "+strings.Join(leaders, ", "), func() bool {
		for _, n := range followers {
			s := p.hubs[n].hub.Status()
			if s.Role != "Follower" || s.Source != "coordinator" || !s.Coordinator.Ready || !slices.Contains(leaders, s.Leader) {
				return false
			}
		}
		return true
	})
}

func (p *namedBed) leads(leaders ...string) {
	p.t.Helper()
	eventually(p.t, strings.Join(leaders, ", ")+" to lead", func() bool {
		return !slices.ContainsFunc(leaders, func(n string) bool {
			s := p.hubs[n].hub.Status()
			return s.Role != "Leader" || s.Source != "cloud" || !p.hubs[n].hub.poolDoor.Desk.Standing.Fresh()
		})
	})
}

// lists are who listed at the cloud.
func (p *namedBed) lists() (who []string) {
	p.clouds[0].set(func() {
		for user, n := range p.clouds[0].lists {
			who = append(who, strings.TrimPrefix(user, "weir:hub:pool-a:")+" "+strconv.Itoa(n))
		}
	})
	slices.Sort(who)
	return who
}

// reaches waits until the relays of some hubs hold what the cloud has.
func (p *namedBed) reaches(nodes ...string) {
	p.t.Helper()
	at := p.clouds[0].relays["endpoints"].Status().Version
	eventually(p.t, "what the cloud has to reach "+strings.Join(nodes, ", "), func() bool {
		return !slices.ContainsFunc(nodes, func(n string) bool {
			return p.hubs[n].hub.sources.Relays()[0].Status().Version < at
		})
	})
}

// TestLeaderHubs: followers read one of the leader hubs, and go to another one by version when theirs stops, or loses
// the cloud. Nobody lists but the leader hubs, once. A leader hub that lost the cloud reads another one. When all have
// lost it, all serve on.
func TestLeaderHubs(t *testing.T) {
	nodes := []string{"edge-1", "edge-2", "edge-3", "edge-4", "edge-5", "edge-6"}
	p := newNamedBed(t, nodes...)
	cloud := p.clouds[0]
	cloud.put("default", "first")
	p.start(nodes...)
	p.name("edge-1", "edge-2")
	p.leads("edge-1", "edge-2")
	followers := nodes[2:]
	p.reads(followers, "edge-1", "edge-2")
	for _, n := range nodes {
		p.shows(n, "first")
	}
	want := []string{"edge-1 2", "edge-2 2"}
	if got := p.lists(); !slices.Equal(got, want) {
		t.Errorf("these listed at the cloud: %v, want %v", got, want)
	}

	p.links["edge-1"].set(true)
	p.reads(append([]string{"edge-1"}, followers...), "edge-2")
	cloud.put("default", "second")
	p.reaches(nodes...)
	p.links["edge-1"].set(false)
	p.leads("edge-1", "edge-2")

	p.stops["edge-2"]()
	p.reads(followers, "edge-1")
	cloud.put("default", "third")
	p.reaches(append([]string{"edge-1"}, followers...)...)
	if got := p.lists(); !slices.Equal(got, want) {
		t.Errorf("these listed at the cloud: %v, want %v", got, want)
	}

	for _, n := range nodes {
		p.links[n].set(true)
	}
	eventually(t, "all to know that they are cut off", func() bool {
		for _, n := range append([]string{"edge-1"}, followers...) {
			if s := p.hubs[n].hub.Status(); s.Coordinator.Ready || s.Role == "Leader" {
				return false
			}
		}
		return true
	})
	h := p.hubs["edge-3"]
	if s := h.hub.Status(); s.Source != "coordinator" || !s.Resources[0].Synced {
		t.Errorf("cut off, a follower is %+v", s)
	}
	cloud.put("default", "fourth")
	for _, n := range nodes {
		p.links[n].set(false)
	}
	p.leads("edge-1")
	p.reads(followers, "edge-1")
	p.reaches(append([]string{"edge-1"}, followers...)...)
	if got := p.lists(); !slices.Equal(got, want) {
		t.Errorf("these listed at the cloud: %v, want %v", got, want)
	}
}

// TestLeaderHubLies: a hub that finds that the cloud contradicts its leader hub says so, lists again from the cloud
// until it may read the other one, and reads that. Nobody else is told.
func TestLeaderHubLies(t *testing.T) {
	p := newNamedBed(t, "edge-1", "edge-2", "edge-3")
	p.start(p.nodes...)
	p.name("edge-1", "edge-2")
	p.reads([]string{"edge-3"}, "edge-1", "edge-2")
	liar, other := p.hubs["edge-3"].hub.Status().Leader, "edge-1"
	if liar == other {
		other = "edge-2"
	}
	p.hubs["edge-3"].hub.self.Contradict("endpoints.v1.", errors.New("what it holds was never there"))
	p.reads([]string{"edge-3"}, other)
	// edge-3 lists, unless it may read the other one before it has begun to.
	got, leaders := p.lists(), []string{"edge-1 2", "edge-2 2"}
	if !slices.Equal(got, leaders) && !slices.Equal(got, append(slices.Clone(leaders), "edge-3 2")) {
		t.Errorf("these listed at the cloud: %v, want %v, and perhaps edge-3 2", got, leaders)
	}
	if log := p.hubs["edge-3"].log.String(); !strings.Contains(log, "level=ERROR") ||
		!strings.Contains(log, "leader="+liar) {
		t.Errorf("edge-3 does not say loudly that %s lied", liar)
	}
	p.clouds[0].put("default", "after")
	p.reaches(p.nodes...)
}

// TestLeaderHubFlags: leader hubs that flags name count while nobody else tells.
func TestLeaderHubFlags(t *testing.T) {
	p := newNamedBed(t, "edge-1")
	p.hubs["edge-1"].config.LeaderHubs = []string{"edge-1=127.0.0.1:1", "edge-9=127.0.0.1:2"}
	p.start("edge-1")
	p.leads("edge-1")
	if now := p.hubs["edge-1"].hub.directory.Now(); now.Mode != contract.ModeLeaderHubs || len(now.Leaders) != 2 {
		t.Errorf("the pool is %+v", now)
	}
}

// TestUntold: a hub that is told of no coordinator and of no leader hub serves from the cloud, and takes its place when
// it is told: the first node of a pool has nobody to name.
func TestUntold(t *testing.T) {
	p := newNamedBed(t, "edge-1", "edge-2")
	for _, n := range p.nodes {
		p.hubs[n].config.LeaderHubs = nil
	}
	p.clouds[0].put("default", "first")
	p.start(p.nodes...)
	p.reaches(p.nodes...)
	if now := p.hubs["edge-1"].hub.directory.Now(); now.Mode != "" || len(now.Leaders)+len(now.Coordinators) > 0 {
		t.Errorf("the pool is %+v", now)
	}
	p.name("edge-1")
	p.reads([]string{"edge-2"}, "edge-1")
	p.clouds[0].put("default", "second")
	p.reaches(p.nodes...)
}

// TestModeSwitch: a pool goes from its coordinator to leader hubs and back, while a client watches: nobody lists again,
// at the cloud or at a hub.
func TestModeSwitch(t *testing.T) {
	nodes := []string{"edge-1", "edge-2", "edge-3", "edge-4"}
	p := newPoolBed(t, nodes...)
	n := &namedBed{poolBed: p, nodes: nodes}
	p.start(nodes...)
	eventually(t, "a leader", func() bool { return p.settled(nodes...) != "" })
	p.clouds[0].put("default", "before")
	n.reaches(nodes...)
	want := n.lists()
	at, err := url.Parse(p.coordinator.server.URL)
	check(t, err)
	for range 2 {
		n.name("edge-2", "edge-3")
		n.leads("edge-2", "edge-3")
		n.reads([]string{"edge-1", "edge-4"}, "edge-2", "edge-3")
		p.clouds[0].put("default", "by-leader-hubs")
		n.reaches(nodes...)
		for _, node := range nodes {
			p.hubs[node].hub.pool.Follow(role.Elected, coordinator.At(at))
		}
		eventually(t, "a leader again", func() bool { return p.settled(nodes...) != "" })
		p.clouds[0].put("default", "by-coordinator")
		n.reaches(nodes...)
	}
	if got := n.lists(); !slices.Equal(got, want) {
		t.Errorf("these listed at the cloud: %v, want %v as before", got, want)
	}
}

// TestLeaderHubForwards: the heartbeats of a node that is cut off reach the cloud by its leader hub, which keeps them
// in memory.
func TestLeaderHubForwards(t *testing.T) {
	p := newNamedBed(t, "edge-1", "edge-2")
	p.start("edge-1", "edge-2")
	p.name("edge-1")
	p.leads("edge-1")
	p.reads([]string{"edge-2"}, "edge-1")
	k := p.hubs["edge-2"].kubelet()
	k.beat()
	p.links["edge-2"].set(true)
	eventually(t, "edge-2 to know that it is cut off", func() bool { return !p.hubs["edge-2"].hub.cloud.Healthy() })
	eventually(t, "a heartbeat to be forwarded", func() bool {
		k.beat()
		return p.hubs["edge-1"].hub.Status().Delegation.Forwarded > 0
	})
	if l := p.hubs["edge-1"].hub.poolDoor.Desk.Leases.Of("edge-2"); l == nil ||
		l.Annotations[contract.DelegateHeartbeat] != contract.Delegated {
		t.Errorf("the leader hub keeps %+v", l)
	}
	p.links["edge-2"].set(false)
	eventually(t, "edge-2 to speak for itself", func() bool {
		k.beat()
		l := p.hubs["edge-1"].hub.poolDoor.Desk.Leases.Of("edge-2")
		return l != nil && l.Annotations[contract.DelegateHeartbeat] == ""
	})
	if resp, _ := get(t, p.hubs["edge-2"].client(nil), "http://"+p.hubs["edge-2"].hub.HealthAddr().String()+
		"/readyz"); resp.StatusCode != http.StatusOK {
		t.Errorf("edge-2 is not ready: %s", resp.Status)
	}
}
