package door

import (
	"log/slog"
	"sync/atomic"

	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/answer"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/overlay"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/shelter"
	"github.com/weir-edge/weir/impl/scope"
)

// Config is what a Door is made of. All of it is needed, but for Overlay, Filters and Own.
type Config struct {
	Node        string
	Identifier  *access.Identifier
	Gate        *access.Gate
	Authorizer  *access.Authorizer
	Stalls      *answer.Stalls
	Sources     *relayed.Sources // what is relayed
	Consistency *relayed.Consistency
	Beats       *beat.Beats
	Proxy       *Proxy
	Shelter     *shelter.Shelter
	Demand      *Demand
	Scope       *scope.Scope
	Overlay     *overlay.Overlay // nil: nothing is laid over what relays hold
	Filters     *filter.Filters  // nil: all see what the cloud shows
	Own         *filter.Own      // nil: so does this node
	Answered    func(*answer.Recorder)
	Logger      *slog.Logger
}

// Door is the handler of all API traffic: it tells who calls, and sends the request to a relay or to the cloud.
type Door struct {
	Config
	router  relayed.Router
	closing atomic.Bool
}

// New makes a door that is open.
func New(c Config) *Door { return &Door{Config: c, router: c.Sources.Relays} }

// Close refuses new requests from now on. It is called before streams end: a client that opens its watch again at a hub
// that is about to end, on the connection it has, would see it end at once with nothing in it, and list.
func (d *Door) Close() { d.closing.Store(true) }
