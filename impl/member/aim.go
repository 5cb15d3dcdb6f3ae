package member

import (
	"log/slog"
	"maps"
	"time"

	"github.com/weir-edge/weir/impl/role"
)

// aim chooses who feeds each relay.
type aim struct {
	detours *role.Detours
	maxAge  time.Duration // of what the coordinator shows while the leader is fresh

	astray bool // a resource is not fed as the others are, or has yet to be
	using  map[string]role.Source
	there  map[string]bool // resources that the pool has, of those that hold nothing yet
	server string          // whose upstream the relays got last
}

// point points each relay to its source, and returns when that may change.
func (a *aim) point(o *Observation, in role.Input, s role.Snapshot, pool *shared) (effects []Effect,
	wake time.Duration) {
	resources := make([]role.Resource, len(o.Relays))
	for i := range o.Relays {
		r := &o.Relays[i]
		resources[i] = role.Resource{
			Name: r.Name, Joins: r.Joins, Synced: r.Synced, Fresh: r.Fresh(o.Now, a.maxAge),
			Denied: r.Refused || pool.missing(r), There: pool.theirs[r.Name],
		}
	}
	from, wake := a.detours.Step(in, s, resources)
	using, there := make(map[string]role.Source, len(o.Relays)), map[string]bool{}
	a.astray = false
	for i := range o.Relays {
		r := &o.Relays[i]
		using[r.Name] = from[i]
		before, known := a.using[r.Name]
		if from[i] == s.Source {
			if known && before != s.Source {
				effects = append(effects, AskAnew{r.Name})
			}
			there[r.Name] = r.Joins && !pool.missing(r)
			if there[r.Name] && !a.there[r.Name] {
				effects = append(effects, Kick{r.Name})
			}
			a.astray = a.astray || r.Joins
			continue
		}
		a.astray = true
		if !known || before == s.Source {
			pool.forget(r.Name)
			effects = append(effects, Log{slog.LevelWarn,
				"the pool's cache does not have a resource: it is fed from the cloud", []any{"resource", r.Name}})
		}
	}
	if a.server != o.Server || !maps.Equal(using, a.using) {
		a.server, a.using = o.Server, using
		effects = append(effects, Point{using})
	}
	a.there = there
	return effects, wake
}
