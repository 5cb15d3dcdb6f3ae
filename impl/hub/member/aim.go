package member

import (
	"log/slog"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/feeder"
	"github.com/weir-edge/weir/impl/role"
)

// aim chooses who feeds each relay. It is of the loop.
type aim struct {
	coordinator *coordinator.Client
	feeders     []*feeder.Feeder
	sources     *feeder.Sources
	shared      *shared
	detours     *role.Detours
	maxAge      time.Duration // of what the coordinator shows while the leader is fresh
	clock       clock.PassiveClock
	logger      *slog.Logger

	using   []role.Source
	replica *coordinator.Use // whose upstream the relays got last
}

// point points each feeder to its source, and returns when that may change.
func (a *aim) point(in role.Input, s role.Snapshot) (wake time.Duration) {
	now, resources, astray := a.clock.Now(), make([]role.Resource, len(a.feeders)), false
	for i, f := range a.feeders {
		st := f.Relay.Status()
		resources[i] = role.Resource{
			Synced: st.Synced, Fresh: st.Fresh(now, a.maxAge), Denied: f.Lacked() || a.shared.missing(f.Resource), There: a.shared.there(f.Resource),
		}
	}
	using, wake := a.detours.Step(in, s, resources)
	for i, f := range a.feeders {
		if using[i] == s.Source {
			if a.using != nil && a.using[i] != s.Source {
				f.AskAnew()
			}
			continue
		}
		astray = true
		if a.using == nil || a.using[i] == s.Source {
			a.shared.forget(f.Resource)
			a.logger.Warn("the pool's cache does not have a resource: it is fed from the cloud", "resource", f.Resource)
		}
	}
	a.shared.astray.Store(astray)
	if replica := a.coordinator.InUse(); replica != a.replica || !slices.Equal(using, a.using) {
		a.replica, a.using = replica, using
		a.sources.Use(using)
	}
	return wake
}
