package hub

import (
	"path/filepath"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/role"
)

// buildDirectory makes what knows what the pool is told about itself: flags, and what cloud and pool say since.
func (h *Hub) buildDirectory() {
	c := directory.Config{
		Pool: h.NodePoolName, File: filepath.Join(h.DataDir, "directory"), Trusted: h.trusted.List,
		Speakers: h.trusted.Speakers, Time: h.time, Clock: h.clock, Logger: h.Logger,
	}
	for _, u := range h.coordinators {
		c.Flags.Coordinators = append(c.Flags.Coordinators, u.String())
	}
	c.Flags.Scope = directory.SharedAll(h.resources)
	if c.Flags.Leaders = h.leaders; len(h.leaders) > 0 {
		c.Flags.Mode, c.Flags.Connected = contract.ModeLeaderHubs, true
	}
	h.directory = directory.New(c)
	h.metrics.registry.MustRegister(h.directory)
	h.buildCourse()
}

// buildCourse makes what takes the hub to where the pool is asked.
func (h *Hub) buildCourse() {
	h.course = membership.NewCourse(membership.CourseConfig{
		Directory: h.directory, Leads: func() bool { return h.pool.Snapshot().Role == role.Leader }, Clock: h.clock,
		Logger: h.Logger,
		Go:     func(e directory.Entry) { h.pool.Follow(pooldoor.Designate(h.NodeName, e)) },
	})
}

// allowance is for how long a certificate of the pool is valid after its end, as the pool was told.
func (h *Hub) allowance() time.Duration { return h.directory.Now().OfflineAllowance() }
