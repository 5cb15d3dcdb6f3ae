package coordinator

import (
	"log/slog"
	"net"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// Config is what a Client is made of.
type Config struct {
	Net     uplink.Dials
	Servers []Server // at first, see Client.Set; there may be none yet
	Node    string
	Pool    string
	Roots   uplink.Authorities
	Cert    uplink.Certificate
	Denied  *trust.HeldDenylist // certificates of the pool that are no longer valid; nil: none
	Policy  member.Probing
	OnBytes func(int)      // of what feeds relays
	Leads   func() bool    // this hub is the leader
	Refused func()         // called without locks when a replica does not take the certificate; nil: it is ignored
	Moved   func()         // called without locks when another replica is used
	Address string         // where this hub shows its relays; "": it is found out
	Listens net.Addr       // where it listens for readers of these; nil: nowhere
	Late    *pki.Allowance // judges the coordinator's certificate; nil: it is judged by this machine's clock, to its end
	Clock   clock.WithTicker
	Logger  *slog.Logger
}
