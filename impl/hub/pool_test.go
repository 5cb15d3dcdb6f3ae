package hub

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// poolBed is some hubs of one pool.
type poolBed struct {
	*bed
	coordinator *fakeCoordinator
	hubs        map[string]*bed
	stops       map[string]func()
}

func newPoolBed(t *testing.T, nodes ...string) *poolBed { return newPoolOf(t, nil, nodes...) }

// newPoolOf prepares a pool whose coordinator has some resources; none: the default.
func newPoolOf(t *testing.T, resources []string, nodes ...string) *poolBed {
	t.Helper()
	p := &poolBed{bed: newBed(t, 1), hubs: map[string]*bed{}, stops: map[string]func(){}}
	p.coordinator = newFakeCoordinator(t, p.local, resources...)
	for _, n := range nodes {
		h := *p.bed
		h.dir, h.log = t.TempDir(), &logBuffer{}
		p.hubs[n] = &h
		h.credentials(n)
		for _, f := range []*string{
			&h.config.CloudClientCertFile, &h.config.ClientCAFiles[0], &h.config.DataDir, &h.config.EtcDir,
		} {
			*f = strings.Replace(*f, p.dir, h.dir, 1)
		}
		h.config.NodeName = n
		h.config.EnableCoordinator, h.config.CoordinatorServers = true, []string{p.coordinator.server.URL}
		h.config.Logger = slog.New(slog.NewTextHandler(h.log, nil))
	}
	return p
}

func (p *poolBed) start(nodes ...string) {
	p.t.Helper()
	for _, n := range nodes {
		p.stops[n] = p.hubs[n].start()
	}
}

// settled reports whether one of the hubs leads, and all others are fed by the coordinator; it returns the leader.
func (p *poolBed) settled(nodes ...string) (leader string) {
	followers := 0
	for _, n := range nodes {
		s := p.hubs[n].hub.Status()
		switch {
		case s.Role == "Leader" && s.Coordinator.Ready:
			leader = n
		case s.Role == "Follower" && s.Coordinator.Ready && s.Source == "coordinator":
			followers++
		}
	}
	if leader == "" || followers != len(nodes)-1 {
		return ""
	}
	return leader
}

// shows waits until a hub serves an object.
func (p *poolBed) shows(node, name string) {
	p.t.Helper()
	h := p.hubs[node]
	client := h.client(nil)
	eventually(p.t, node+" to show "+name, func() bool {
		resp, _ := get(p.t, client, h.url()+"/api/v1/namespaces/default/endpoints/"+name, alice...)
		return resp.StatusCode == http.StatusOK
	})
}

// TestPool: hubs that start together elect one that lists from the cloud; the others never do. What changes in the
// cloud shows at all of them. A leader that stops hands over at once, without another list.
func TestPool(t *testing.T) {
	nodes := []string{"edge-1", "edge-2", "edge-3"}
	p := newPoolBed(t, nodes...)
	cloud := p.clouds[0]
	cloud.put("default", "first")
	p.start(nodes...)
	eventually(t, "one hub to lead and the others to follow", func() bool { return p.settled(nodes...) != "" })
	leader := p.settled(nodes...)
	for _, n := range nodes {
		p.shows(n, "first")
	}
	cloud.put("default", "second")
	for _, n := range nodes {
		p.shows(n, "second")
	}
	lists := func() (who []string) {
		cloud.set(func() {
			for user, n := range cloud.lists {
				for range n {
					who = append(who, user)
				}
			}
		})
		return who
	}
	if who := lists(); len(who) != 2 || who[0] != "weir:hub:pool-a:"+leader || who[1] != who[0] {
		t.Errorf("%s leads, but these listed: %v", leader, who)
	}
	if h := p.coordinator.holder(contract.InformerSync); h != leader {
		t.Errorf("leader-informer-sync is held by %s, not by %s", h, leader)
	}

	began := time.Now()
	p.stops[leader]()
	if h := p.coordinator.holder(contract.ElectionLease); h == leader {
		t.Errorf("the Lease was not given back: held by %s", h)
	}
	var rest []string
	for _, n := range nodes {
		if n != leader {
			rest = append(rest, n)
		}
	}
	eventually(t, "another hub to lead", func() bool { return p.settled(rest...) != "" })
	if d := time.Since(began); d > p.config.LeaderElectLeaseDuration {
		t.Errorf("handing over took %v, as long as a Lease expires in", d)
	}
	cloud.put("default", "third")
	for _, n := range rest {
		p.shows(n, "third")
	}
	if who := lists(); len(who) != 2 {
		t.Errorf("another list after the leader changed: %v", who)
	}
	if got := p.coordinator.leases.led(); len(got) != 2 || got[0] == got[1] {
		t.Errorf("these led: %v", got)
	}
}

// TestPoolLeaderLosesCloud: the leader hands over and follows.
func TestPoolLeaderLosesCloud(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	link := newCut(t, strings.TrimPrefix(p.clouds[0].url(), "https://"))
	p.hubs["edge-1"].config.CloudServers = []string{link.url()}
	p.start("edge-1")
	eventually(t, "edge-1 to lead", func() bool { return p.settled("edge-1") == "edge-1" })
	p.start("edge-2")
	eventually(t, "edge-2 to follow", func() bool { return p.settled("edge-1", "edge-2") == "edge-1" })
	link.set(true)
	eventually(t, "edge-2 to lead", func() bool { return p.settled("edge-1", "edge-2") == "edge-2" })
	p.clouds[0].put("default", "after")
	// edge-1 cannot ask the cloud who may read, so look at its relay.
	eventually(t, "the change to reach edge-1", func() bool {
		return p.hubs["edge-1"].hub.sources.Relays()[0].Status().Version == p.hubs["edge-2"].hub.sources.Relays()[0].Status().
			Version && p.hubs["edge-1"].hub.sources.Relays()[0].Status().Objects == 1
	})
	link.set(false)
	eventually(t, "edge-1 to reach the cloud", func() bool { return p.hubs["edge-1"].hub.cloud.Healthy() })
	if leader := p.settled("edge-1", "edge-2"); leader != "edge-2" {
		t.Errorf("%q leads after the link healed", leader)
	}
}

// TestPoolCoordinatorLost: hubs go on against the cloud by themselves, and come back when it does, though with an empty
// disk.
func TestPoolCoordinatorLost(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	p.start("edge-1", "edge-2")
	both := []string{"edge-1", "edge-2"}
	eventually(t, "a leader", func() bool { return p.settled(both...) != "" })
	p.coordinator.set(func() { p.coordinator.down = true })
	eventually(t, "both to be on their own", func() bool {
		for _, n := range both {
			if s := p.hubs[n].hub.Status(); s.Role != "Pending" || s.Source != "cloud" || s.Coordinator.Healthy {
				return false
			}
		}
		return true
	})
	p.clouds[0].put("default", "meanwhile")
	for _, n := range both {
		p.shows(n, "meanwhile")
	}
	p.coordinator.wipe()
	p.coordinator.set(func() { p.coordinator.down = false })
	eventually(t, "a leader again", func() bool { return p.settled(both...) != "" })
	p.clouds[0].set(func() {
		for user, n := range p.clouds[0].lists {
			if n > 2 {
				t.Errorf("%s listed %d times", user, n)
			}
		}
	})
}

// TestPoolUnread: a leader that the coordinator does not read lets another one lead.
func TestPoolUnread(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	p.coordinator.set(func() { p.coordinator.shuns = "edge-1" })
	p.start("edge-1")
	eventually(t, "edge-1 to lead, in vain", func() bool { return p.hubs["edge-1"].hub.Status().Role == "Leader" })
	p.start("edge-2")
	eventually(t, "edge-2 to lead", func() bool { return p.settled("edge-1", "edge-2") == "edge-2" })
}

// TestPoolWithoutCoordinator: one that never answers costs a short wait.
func TestPoolWithoutCoordinator(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	p.clouds[0].put("default", "x")
	p.coordinator.set(func() { p.coordinator.down = true })
	p.start("edge-1")
	p.shows("edge-1", "x")
	if s := p.hubs["edge-1"].hub.Status(); s.Role != "Pending" || s.Source != "cloud" {
		t.Errorf("got %+v", s)
	}
}

// TestLeadsAgain: the leader of a pool that ends while it cannot give its Lease back, because the coordinator is gone
// before, leads again once both are there: nobody else may, and the coordinator has nothing. Its name in the election
// is another.
func TestLeadsAgain(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	// longer than the coordinator lets it be held for nothing.
	p.hubs["edge-1"].config.LeaderElectLeaseDuration = 29 * time.Second
	p.clouds[0].put("default", "web")
	p.start("edge-1")
	eventually(t, "the hub to lead", func() bool { return p.settled("edge-1") != "" })
	p.coordinator.set(func() { p.coordinator.down = true })
	p.stops["edge-1"]()
	if holder := p.coordinator.holder(contract.ElectionLease); holder != "edge-1" {
		t.Fatalf("the Lease was given back: it is of %q", holder)
	}
	before := p.coordinator.identity()
	p.coordinator.set(func() { p.coordinator.down = false })
	p.coordinator.forget()
	p.start("edge-1")
	eventually(t, "the hub to lead again", func() bool { return p.settled("edge-1") != "" })
	if led := p.coordinator.leases.led(); len(led) != 1 {
		t.Errorf("the Lease was free before the hub led again: %v", led)
	}
	if now := p.coordinator.identity(); now == before {
		t.Errorf("two processes are %s", now)
	}
}
