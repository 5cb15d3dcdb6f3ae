package pooldoor

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/moved"
)

// Moved is the way of a hub to the desks of its pool that have what hubs say of moved pods: its own, and those of the
// coordinator or of the leader hubs. It has one caller at a time.
type Moved struct {
	Node        string
	Coordinator *coordinator.Client
	Desk        *Desk

	read map[*coordinator.Replica]*reading
	own  reading
}

// Moved is the way of this hub to them.
func (d *Door) Moved(c *coordinator.Client) *Moved {
	return &Moved{Node: d.Node, Coordinator: c, Desk: d.Desk}
}

// movedTimeout is of one request to a desk: it is in the pool, and in memory.
const movedTimeout = 2 * time.Second

// reading is what of a desk was read.
type reading struct {
	desk  string
	after uint64
	whole bool // it has lost the contents of the statement of this node
}

// Forget has all be read again.
func (m *Moved) Forget() { m.read, m.own = nil, reading{} }

// Exchange hands in what say gives at all desks, and reads at the one in use and at that of this hub. whole: the desk
// has no contents of this node. ok: what the pool has was read.
func (m *Moved) Exchange(ctx context.Context, say func(whole bool) *moved.Signed) (all []moved.Signed, ok bool) {
	if answer, err := m.Desk.moved.Exchange(m.Node, m.own.ask(say, false)); err == nil {
		all = m.own.took(answer)
	}
	using, replicas := m.Coordinator.InUse().Replica, m.Coordinator.Replicas()
	before := m.read
	m.read = make(map[*coordinator.Replica]*reading, len(replicas))
	var each sync.WaitGroup
	var mu sync.Mutex
	for _, replica := range replicas {
		r := before[replica]
		if r == nil {
			r = &reading{}
		}
		m.read[replica] = r
		ask := r.ask(say, replica != using)
		if ask.Mute && ask.Statement == nil {
			continue
		}
		each.Go(func() {
			limit, cancel := context.WithTimeout(ctx, movedTimeout)
			defer cancel()
			var answer exchange.MovedAnswer
			if _, err := replica.Do(limit, http.MethodPost, contract.MovedPath, ask, &answer); err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			got := r.took(answer)
			if !ask.Mute {
				all, ok = append(all, got...), true
			}
		})
	}
	each.Wait()
	return all, ok || m.Desk.Leases.IsOpen()
}

// Behind reports whether a desk has more, or wants more.
func (m *Moved) Behind() bool {
	for _, r := range m.read {
		if r.whole {
			return true
		}
	}
	return m.own.whole
}

func (r *reading) ask(say func(whole bool) *moved.Signed, mute bool) exchange.MovedAsk {
	return exchange.MovedAsk{Desk: r.desk, After: r.after, Statement: say(r.whole || r.desk == ""), Mute: mute}
}

// took notes what was read, and returns it.
func (r *reading) took(a exchange.MovedAnswer) []moved.Signed {
	r.desk, r.after, r.whole = a.Desk, a.At, a.Whole
	return a.Statements
}
