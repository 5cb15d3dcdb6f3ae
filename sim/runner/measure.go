package runner

import (
	"context"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/report"
	"github.com/weir-edge/weir/sim/runtime"
)

// direction translates a link's direction into the report's.
func direction(d link.Direction) string {
	if d == link.Up {
		return report.Up
	}
	return report.Down
}

// Bytes adds up what crossed a pool's link so far.
func Bytes(way string, l *link.Pool) report.ByteTable {
	sums := map[report.ByteRow]int64{}
	for _, c := range l.Counters() {
		sums[report.ByteRow{Way: way, Class: c.Class, Direction: direction(c.Dir), Phase: c.Phase, Node: c.Node}] += c.Bytes
	}
	rows := make(report.ByteTable, 0, len(sums))
	for row, n := range sums {
		row.Bytes = n
		rows = append(rows, row)
	}
	return rows
}

// Series is what crossed a pool's link in each second since began.
func Series(way string, l *link.Pool, began time.Time) []report.Series {
	type key struct{ class, dir string }
	bytes := map[key][]int64{}
	for _, s := range l.Series(time.Second) {
		i := max(int(s.At.Sub(began)/time.Second), 0)
		k := key{s.Class, direction(s.Dir)}
		for len(bytes[k]) <= i {
			bytes[k] = append(bytes[k], 0)
		}
		bytes[k][i] += s.Bytes
	}
	out := make([]report.Series, 0, len(bytes))
	for k, b := range bytes {
		out = append(out, report.Series{Way: way, Direction: k.dir, Class: k.class, Bytes: b})
	}
	return out
}

// status is what hub and coordinator say of themselves at their status path, as far as the runner reads it.
type status struct {
	Pool      string           `json:"pool"`
	Role      string           `json:"role"`
	Reason    string           `json:"reason"`
	Source    string           `json:"source"`
	Leader    string           `json:"leader"` // of a coordinator: the node
	Term      string           `json:"term"`
	Fed       string           `json:"fed"` // of one of three coordinators: the one that is fed
	Ready     bool             `json:"ready"`
	Resources []resourceStatus `json:"resources"`
	Idle      []string         `json:"idleResources"` // that nobody reads

	Directory struct { // what a hub was told of its pool
		Version uint64 `json:"version"`
		Live    bool   `json:"live"`
		Mode    string `json:"mode"`
	} `json:"directory"`
	// Coordinator is where a hub asks.
	Coordinator struct {
		Server string `json:"server"`
	} `json:"coordinator"`
}

type resourceStatus struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"`
	Ready    bool   `json:"ready"`
	Version  uint64 `json:"version"`

	AgeSeconds float64 `json:"ageSeconds"` // of a hub's; -1: never fresh
	Mismatches int     `json:"mismatches"` // differences that did not fit
}

// readiness polls the status of Weir's parts until all their relays are synced, the coordinator's ready as well, and
// notes when each was.
type readiness struct {
	mu    sync.Mutex
	began time.Time
	seen  map[[3]string]report.Readiness // by pool, node and resource; the node "" is the pool
}

// poll reads the part that is told by of; it returns whether all of its resources are there. unread: there may be none,
// since nobody reads there.
func (r *readiness) poll(ctx context.Context, of report.Readiness, p runtime.Part, unread bool) bool {
	var s status
	if err := p.Status(ctx, &s); err != nil {
		return false
	}
	all := len(s.Resources) > 0 || unread && len(s.Idle) > 0
	for _, res := range s.Resources {
		there := res.Synced && (of.Node != "" || res.Ready)
		all = all && there
		r.mu.Lock()
		key := [3]string{of.Pool, of.Node, res.Resource}
		if old, ok := r.seen[key]; !ok || !old.Synced {
			now := of
			now.Resource, now.Synced = res.Resource, there
			if there {
				now.Seconds = time.Since(r.began).Seconds()
			}
			r.seen[key] = now
		}
		r.mu.Unlock()
	}
	return all
}

func (r *readiness) list() []report.Readiness {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]report.Readiness, 0, len(r.seen))
	for _, v := range r.seen {
		out = append(out, v)
	}
	return out
}

// peaks keeps the largest memory readings of processes.
type peaks struct {
	mu   sync.Mutex
	peak map[runtime.PartID]report.Memory
}

func (p *peaks) read(id runtime.PartID, part runtime.Part) {
	u, err := part.Usage()
	if err != nil {
		return // it does not run now
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	m := p.peak[id]
	m.Process, m.Node, m.When = id.Kind(), id.Of(), "peak"
	m.RSSAnonBytes, m.RSSBytes = max(m.RSSAnonBytes, u.RSSAnon), max(m.RSSBytes, u.RSS)
	p.peak[id] = m
}

func (p *peaks) list() []report.Memory {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]report.Memory, 0, len(p.peak))
	for _, m := range p.peak {
		out = append(out, m)
	}
	return out
}
