package membership

import (
	"log/slog"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
)

// Config is what a hub's part in its pool is made of. All of it is needed.
type Config struct {
	IdentityFile string // where the name by which this process leads is kept for the next one
	Coordinator  *coordinator.Client
	Policy       member.Probing // of probes of it
	Cloud        *uplink.Cloud

	Sources      *relayed.Sources
	Idle         func() []string                     // resources of the pool that are not fed: nobody here reads them
	Read         func() (read bool, since time.Time) // whether the coordinator reads what this hub shows
	Contradicted func(resource string)               // counts what the cloud said of the pool's cache

	Desk       *pooldoor.Desk // what this hub shows as a leader hub
	Discovery  *pooldoor.Discovery
	Mirror     *beat.Mirror
	Forwarding *beat.Forwarding

	Clock  clock.WithTicker
	Logger *slog.Logger
}
