package member

import (
	"log/slog"
	"maps"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/feeder"
	"github.com/weir-edge/weir/impl/role"
)

// aim chooses who feeds each relay. It is of the loop.
type aim struct {
	coordinator *coordinator.Client
	sources     *feeder.Sources
	shared      *shared
	detours     *role.Detours
	maxAge      time.Duration // of what the coordinator shows while the leader is fresh
	clock       clock.PassiveClock
	logger      *slog.Logger

	using   map[*feeder.Feeder]role.Source
	there   map[*feeder.Feeder]bool // those that the pool has, of those that hold nothing yet
	replica *coordinator.Use        // whose upstream the relays got last
}

// point points each feeder to its source, and returns when that may change.
func (a *aim) point(in role.Input, s role.Snapshot) (wake time.Duration) {
	feeders, now, astray := a.sources.All(), a.clock.Now(), false
	resources := make([]role.Resource, len(feeders))
	for i, f := range feeders {
		st := f.Relay.Status()
		resources[i] = role.Resource{
			Name: f.Resource, Joins: st.Joins, Synced: st.Synced, Fresh: st.Fresh(now, a.maxAge), Denied: f.Lacked() || a.shared.missing(f), There: a.shared.there(f.Resource),
		}
	}
	from, wake := a.detours.Step(in, s, resources)
	using, there := make(map[*feeder.Feeder]role.Source, len(feeders)), map[*feeder.Feeder]bool{}
	for i, f := range feeders {
		using[f] = from[i]
		before, known := a.using[f]
		if from[i] == s.Source {
			if known && before != s.Source {
				f.AskAnew()
			}
			if there[f] = resources[i].Joins && !a.shared.missing(f); there[f] && !a.there[f] {
				f.Kick()
			}
			astray = astray || resources[i].Joins
			continue
		}
		astray = true
		if !known || before == s.Source {
			a.shared.forget(f.Resource)
			a.logger.Warn("the pool's cache does not have a resource: it is fed from the cloud", "resource", f.Resource)
		}
	}
	a.shared.astray.Store(astray)
	if replica := a.coordinator.InUse(); replica != a.replica || !maps.Equal(using, a.using) {
		a.replica, a.using = replica, using
		a.sources.Use(using)
	}
	a.there = there
	return wake
}
