package hub

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/wire"
)

// inHistory reports whether the relays of hubs are in a history of the cloud.
func (p *poolBed) inHistory(number uint64, nodes ...string) bool {
	for _, n := range nodes {
		for _, r := range p.hubs[n].hub.Status().Resources {
			if r.History != number || !r.Synced {
				return false
			}
		}
	}
	return true
}

// misses waits until a hub serves no object of a name.
func (p *poolBed) misses(node, name string) {
	p.t.Helper()
	h := p.hubs[node]
	client := h.client(nil)
	eventually(p.t, node+" to have no "+name, func() bool {
		resp, _ := get(p.t, client, h.url()+"/api/v1/namespaces/default/endpoints/"+name, alice...)
		return resp.StatusCode == http.StatusNotFound
	})
}

// TestCloudRestored: the leader finds it out, lists once, and everybody follows over the pool's own network: a hub that
// looks on, a coordinator that comes back with a disk of before, and a hub that was away, with what its disk held.
func TestCloudRestored(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2", "edge-3")
	cloud := p.clouds[0]
	for _, h := range p.hubs {
		h.config.StoreEvery, h.config.StoreKeyFile = 10*time.Millisecond, NoKey
	}
	cloud.put("default", "kept")
	p.start("edge-1", "edge-2")
	eventually(t, "a leader", func() bool { return p.settled("edge-1", "edge-2") != "" })
	leader := p.settled("edge-1", "edge-2")
	p.start("edge-3")
	eventually(t, "edge-3 to follow", func() bool { return p.settled("edge-1", "edge-2", "edge-3") == leader })
	for range 20 {
		cloud.put("default", "lost")
	}
	for n := range p.hubs {
		p.shows(n, "lost")
	}
	p.stops["edge-3"]()
	old := map[*relay.Relay][]*wire.Object{} // what the coordinator has on disk
	versions := map[*relay.Relay]uint64{}
	for _, r := range p.coordinator.relays {
		for o := range r.Objects() {
			old[r] = append(old[r], o)
		}
		versions[r] = r.Status().Version
	}

	cloud.restore(101)
	eventually(t, "another history", func() bool { return p.inHistory(1, "edge-1", "edge-2") })
	cloud.put("default", "new")
	for _, n := range []string{"edge-1", "edge-2"} {
		p.shows(n, "new")
		p.shows(n, "kept")
		p.misses(n, "lost")
	}
	eventually(t, "the pool to be fresh", func() bool { return p.settled("edge-1", "edge-2") == leader })

	cloud.set(func() { // a list more is one that was cheaper than changes of such small objects
		for user, n := range cloud.lists {
			if user != "weir:hub:pool-a:"+leader || n < 4 || n > 6 {
				t.Errorf("%s listed %d times, and %s leads: want 4 lists, by nobody else", user, n, leader)
			}
		}
	})

	p.coordinator.set(func() { p.coordinator.down = true })
	p.coordinator.wipe()
	for r, items := range old {
		check(t, relay.NewIntake(r).Yield(relay.History{}, &wire.Event{Version: versions[r]}, items))
	}
	p.coordinator.set(func() { p.coordinator.down = false })
	eventually(t, "the coordinator to come along", func() bool {
		for _, r := range p.coordinator.relays {
			if r.Status().History.Number != 1 {
				return false
			}
		}
		return p.settled("edge-1", "edge-2") != ""
	})
	p.start("edge-3")
	eventually(t, "edge-3 to come along", func() bool { return p.inHistory(1, "edge-3") })
	p.shows("edge-3", "new")
	p.misses("edge-3", "lost")
	for _, n := range []string{"edge-1", "edge-2"} {
		p.misses(n, "lost")
		if !p.inHistory(1, n) {
			t.Errorf("%s: %+v", n, p.hubs[n].hub.Status().Resources)
		}
	}
	for n, h := range p.hubs {
		eventually(t, n+" to keep what is of this history", func() bool {
			d, _ := h.hub.store.Document("weir/history")
			return string(d.Body) == "1"
		})
	}
}

// TestLeaderOfBefore: a hub that was alone with its disk when the cloud was restored, and leads when it is back, lists
// from the cloud what the pool knows to be of another history, though it could not find that out by itself.
func TestLeaderOfBefore(t *testing.T) {
	p := newPoolBed(t, "edge-1")
	cloud := p.clouds[0]
	cloud.put("default", "kept")
	for _, r := range p.coordinator.relays {
		check(t, r.ReplaceIn(relay.History{Number: 3, Lost: 500}, 90, nil))
	}
	p.start("edge-1")
	eventually(t, "the history of the pool", func() bool {
		return p.inHistory(3, "edge-1") && p.settled("edge-1") == "edge-1"
	})
	p.shows("edge-1", "kept")
	for _, r := range p.coordinator.relays {
		if s := r.Status(); s.History.Number != 3 || s.Version < 100 {
			t.Errorf("%+v", s)
		}
	}
}

// TestStoreOfFollower: what a follower keeps for the time without the cloud follows the cloud to another history,
// though the pool told it of that.
func TestStoreOfFollower(t *testing.T) {
	p := newPoolBed(t, "edge-1", "edge-2")
	cloud := p.clouds[0]
	for _, h := range p.hubs {
		h.config.PoolScopeResources = []string{"endpointslices.v1.discovery.k8s.io"}
	}
	follower := p.hubs["edge-2"]
	link := newCut(t, strings.TrimPrefix(cloud.url(), "https://"))
	follower.config.CloudServers = []string{link.url()}
	follower.config.StoreEvery = 10 * time.Millisecond
	follower.config.StoreKeyFile = NoKey
	cloud.put("default", "kept")
	p.start("edge-1")
	eventually(t, "a leader", func() bool { return p.settled("edge-1") != "" })
	p.start("edge-2")
	eventually(t, "a follower", func() bool { return p.settled("edge-1", "edge-2") == "edge-1" })
	follower.here()
	for range 20 {
		cloud.put("default", "lost")
	}
	cloud.advance("endpointslices")
	eventually(t, "the relays to have heard of that", func() bool {
		return p.hubs["edge-1"].hub.Status().Resources[0].Version > 101 && follower.hub.Status().Resources[0].Version > 101
	})
	cert := p.ca.tls("system:node:edge-2", "system:nodes")
	node := follower.client(&cert)
	if names, _, resp := follower.list(node, ""); names != "kept lost" {
		t.Fatalf("%s: %q", resp.Status, names)
	}
	follower.kept(1)

	cloud.restore(101)
	eventually(t, "another history", func() bool { return p.inHistory(1, "edge-1", "edge-2") })
	cloud.put("default", "new")
	if names, _, resp := follower.list(node, ""); names != "kept new" {
		t.Fatalf("%s: %q", resp.Status, names)
	}
	link.set(true)
	follower.away()
	if names, _, resp := follower.list(node, ""); names != "kept new" {
		t.Errorf("without the cloud: %s: %q, and the cloud has kept new", resp.Status, names)
	}
}

// advance lets a resource reach the version that the cloud is at.
func (c *fakeCloud) advance(resource string) {
	c.mu.Lock()
	v := c.version
	c.mu.Unlock()
	check(c.t, c.relays[resource].Apply(&wire.Event{Type: wire.Bookmark, Version: v}))
}
