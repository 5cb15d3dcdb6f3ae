package virtual

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/sim/client"
)

// wellPool is a pool that leads, feeds and is fresh, to the judge's content.
func wellPool(t *testing.T) (p *Pool, leader, other *Hub) {
	t.Helper()
	p = New(Config{Seed: 1, Hubs: 3, Clients: 1, Grace: 10 * time.Second, Spread: time.Second})
	p.Run(2 * time.Minute)
	p.judge.healed()
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	for _, h := range p.hubs {
		if h.snapshot().Role == role.Leader {
			leader = h
		} else {
			other = h
		}
	}
	return p, leader, other
}

// TestEveryLieIsObjectedTo: the judge can fail. Each lie is told in a pool that is well, and has to be found by its
// name.
func TestEveryLieIsObjectedTo(t *testing.T) {
	healed := func(change func(p *Pool, leader, other *Hub)) func(p *Pool, leader, other *Hub) {
		return func(p *Pool, leader, other *Hub) {
			change(p, leader, other)
			p.judge.healed()
		}
	}
	for name, lie := range map[string]struct {
		said string
		tell func(p *Pool, leader, other *Hub)
	}{
		"a relay goes back": {"its relay goes back from", func(p *Pool, _, other *Hub) {
			p.judge.reached(other.name, other.server)
			older := newServer(p.Loop, false)
			older.era = other.server.era
			if err := older.Replace(other.server.Status().Version-1, nil); err != nil {
				panic(err)
			}
			p.judge.reached(other.name, older)
		}},
		"a relay goes back to an era": {"its relay goes back from era", func(p *Pool, _, other *Hub) {
			other.server.era = 5
			p.judge.reached(other.name, other.server)
			other.server.era = 4
			p.judge.reached(other.name, other.server)
		}},
		"two leaders": {"leads beside", healed(func(_ *Pool, _, other *Hub) { other.out.Snapshot.Role = role.Leader })},
		"no leader":   {"nobody leads", healed(func(_ *Pool, leader, _ *Hub) { leader.out.Snapshot.Role = role.Follower })},
		"a pool that is not fresh": {"its relay is not fresh", healed(func(p *Pool, _, _ *Hub) {
			p.coord.server = newServer(p.Loop, false)
		})},
		"a hub that does not hold the pool for fresh": {
			"leads, but", healed(func(_ *Pool, _, other *Hub) { other.out.Snapshot.Ready = false }),
		},
		"a follower at the cloud": {
			"leads, but", healed(func(_ *Pool, _, other *Hub) { other.out.Snapshot.Source = role.Cloud }),
		},
		"a leader that feeds from the pool": {
			"leads, but", healed(func(_ *Pool, leader, _ *Hub) { leader.out.Snapshot.Source = role.Coordinator }),
		},
		"a hub that knows another leader": {
			"leads, but", healed(func(_ *Pool, _, other *Hub) { other.out.Snapshot.Leader = "somebody_1" }),
		},
		"a relay of another era": {
			"healed, but a relay is of era", healed(func(_ *Pool, _, other *Hub) { other.server.era-- }),
		},
		"a client that lacks an object": {"healed, at", healed(func(p *Pool, _, _ *Hub) {
			state := p.clients[0].judged.State()
			delete(state, slices.Sorted(maps.Keys(state))[0])
		})},
		"a client that has a ghost": {
			"healed, at", healed(func(p *Pool, _, _ *Hub) {
				p.clients[0].judged.State()["ns/ghost"] = client.Item{Key: "ns/ghost"}
			}),
		},
		"a client that never had all": {"healed, at", healed(func(p *Pool, _, _ *Hub) { p.clients[0].synced = false })},
		"a feed of who does not lead": {"holds the lease", func(p *Pool, leader, other *Hub) {
			p.judge.effective(member.Leader{Node: other.name, Term: leader.lead.term})
		}},
		"a feed of a term that is over": {"after one under", func(p *Pool, leader, _ *Hub) {
			p.judge.applied = leader.lead.term
			p.judge.applied.Version++
			p.judge.effective(member.Leader{Node: leader.name, Term: leader.lead.term})
		}},
		"a feed of a term of another life": {"in its life", func(p *Pool, leader, _ *Hub) {
			term := leader.lead.term
			term.Incarnation = "then"
			p.judge.effective(member.Leader{Node: leader.name, Term: term})
		}},
		"a leader without a cloud": {"leads with cloud=false", func(p *Pool, leader, _ *Hub) {
			leader.cloud.OK = false
			p.judge.stepped(leader)
		}},
		"a leader without a coordinator": {"coordinator=false", func(p *Pool, leader, _ *Hub) {
			leader.coordinator.OK = false
			p.judge.stepped(leader)
		}},
		"a follower that feeds": {"feeds under", func(p *Pool, leader, other *Hub) {
			other.lead.term = leader.lead.term
			p.judge.stepped(other)
		}},
		"a leader that feeds under another term": {"feeds under", func(p *Pool, leader, _ *Hub) {
			leader.lead.term.Version++
			p.judge.stepped(leader)
		}},
		"a term that goes back": {"its term goes back", func(p *Pool, leader, _ *Hub) {
			term := leader.snapshot().Term
			term.Version++
			p.judge.newest[leader.name] = term
			p.judge.stepped(leader)
		}},
		"a follower that leaves the pool at once": {"goes to the cloud", func(p *Pool, _, other *Hub) {
			other.out.Snapshot.Source, other.out.Snapshot.Ready = role.Cloud, false
			p.judge.stepped(other)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p, leader, other := wellPool(t)
			lie.tell(p, leader, other)
			if err := p.Err(); err == nil || !strings.Contains(err.Error(), lie.said) {
				t.Errorf("said: %v, want %q in it", err, lie.said)
			}
		})
	}
}
