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
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Config is what a hub's part in its pool is made of. All of it is needed.
type Config struct {
	Role         role.Config
	IdentityFile string // where Role.Identity is kept for the next process
	Coordinator  *coordinator.Client
	Policy       member.Probing // of probes of it
	Cloud        *uplink.Cloud

	Sources      *relayed.Sources
	Idle         func() []string                     // resources of the pool that are not fed: nobody here reads them
	MaxAge       time.Duration                       // of the last sign of a stream from the cloud
	Read         func() (read bool, since time.Time) // whether the coordinator reads what this hub shows
	Overrule     func(history uint64)                // the cloud is in this one
	Judge        func() *hop.Upstream                // the cloud; nil: it cannot be asked
	Contradicted func(resource string)               // counts what the cloud said of the pool's cache

	Desk       *pooldoor.Desk // what this hub shows as a leader hub
	Discovery  *pooldoor.Discovery
	Mirror     *beat.Mirror
	Forwarding *beat.Forwarding

	Clock  clock.WithTicker
	Logger *slog.Logger
}
