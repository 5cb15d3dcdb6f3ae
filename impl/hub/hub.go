package hub

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/denylist"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/coordinator"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/mirror"
	"github.com/weir-edge/weir/impl/hub/overlay"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/reach"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/shelter"
	"github.com/weir-edge/weir/impl/hub/standin"
	"github.com/weir-edge/weir/impl/hub/togate"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/hub/wayin"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/snapshot"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/store"
	"github.com/weir-edge/weir/impl/trust"
)

// Hub is the one door of a node to the Kubernetes API. See the package comment.
type Hub struct {
	*settings
	clock   clock.WithTickerAndDelayedExecution
	metrics *metrics
	credentials

	cloud       *uplink.Cloud
	asNode      http.RoundTripper // to it, of what this node's own certificate asks
	door        *door.Door
	coordinator *coordinator.Client // nil: there is none, and so for what follows
	pool        pool
	poolDoor    *pooldoor.Door
	forwarding  *beat.Forwarding
	rollCall    *beat.RollCall // nil: there is no pool
	reporter    *beat.Reporter

	discovery *pooldoor.Discovery
	directory *directory.Directory // nil: there is no pool
	course    *membership.Course   // likewise
	filters   *filter.Filters      // nil: all see what the cloud shows

	shared
	alone
	ports
}

// shared is what the hub has of what its pool shares.
type shared struct {
	sources *relayed.Sources // what is relayed
	gate    *togate.Gate     // where that is read in the cloud, if there is one; nil: there is no pool
	wayIn   *wayin.WayIn     // by which the cloud reaches into the pool; nil likewise
	scope   *scope.Scope     // and what may be
	reads   *door.Demand     // of clients of this node
	kept    *snapshot.Snapshots
	prober  *reach.Prober // of the ways to where it is shared; nil: there is no pool
}

// alone is what a hub has for the time without the cloud.
type alone struct {
	store   *store.Store
	shelter *shelter.Shelter
	judge   *identity.Judge  // of callers
	overlay *overlay.Overlay // nil: there is no pool
	key     *disk.Key        // of what is kept of objects; nil: nothing is encrypted
}

// credentials are all certificates of the hub.
type credentials struct {
	kubeconfig *uplink.Kubeconfig // the kubelet's; nil: flags say all
	reload     *uplink.Reloader   // of those in files
	denied     *denylist.Held     // those of the pool that are no longer valid; nil: there is no pool
	serving    serving
	node       uplink.Certificate // of the node, at the cloud
	shows      uplink.Bearer      // what the node shows there beside it; nil: nothing
	tokens     *credential.Source // of that, if the kubelet has no certificate
	atCloud    *uplink.User       // of the hub itself, there
	member     uplink.Certificate // in the pool; nil: there is none
	forward    uplink.Certificate // of a leader, at the cloud; nil: there is no pool
	trusted    *trust.Held        // authorities of the pool; nil: there is none
	keepers    []*enrol.Keeper    // of those that the hub asks for itself
	beside     []*enrol.Keeper    // those of them that are the coordinator's on this node
	asking     *enrol.Metrics
	late       *pki.Allowance // for those of the pool that have ended; nil: there is no pool
	own        own            // of the node itself, for its pods and kubelet
	time       *pki.Proven    // by which all are judged
}

// ports are those that are open; nil: one is not.
type ports struct {
	secure, health, plain, atPool net.Listener
	mirror                        *mirror.Mirror // of registries
	lacks                         *standin.List  // of them, and of what else a hub needs
}

// serving is what the hub shows to the one that connects, and wants to see.
type serving struct {
	cert    uplink.Certificate
	callers *uplink.Bundle // who signs certificates of callers; nil: they are not asked for
	own     bool           // the node's own authority does as well
}

// config asks for a client certificate if there are authorities that could have signed it.
func (s *serving) config() *tls.Config { return door.TLS(s.cert, s.callers != nil || s.own) }

// pool is the hub's part in its pool, if it has one: a *membership.Pool, or membership.Alone.
type pool interface {
	Run(ctx context.Context, told func() bool) error // told: that ctx ends is no failure
	Snapshot() role.Snapshot
	Cause() string
	Seen() beat.InPool
	Changed()                                // something may have changed for it
	Denied(resource string)                  // a source does not give it
	Contradict(resource string, proof error) // the cloud says otherwise than the pool
	Renew()                                  // follows a change of credentials
	Close()                                  // gives back connections on which nothing runs, after Run
	Status() *membership.Status              // nil: there is no pool
	Follow(role.Designation, []coordinator.Server)
	Vouch(*relay.Relay) bool // a leader hub shows it, and it is fresh
}

// renew follows a change of credentials in files.
func (h *Hub) renew() {
	defer h.shelter.Renewing()()
	if h.trusted != nil {
		h.trusted.Reread()
	}
	if h.tokens != nil {
		if u, err := h.kubeconfig.User(); err == nil {
			h.tokens.Follow(u)
		}
	}
	h.cloud.Renew()
	h.pool.Renew()
	for _, k := range h.keepers {
		k.Look()
	}
}

// cloudAsJudge is the cloud while it can be asked.
func (h *Hub) cloudAsJudge() *hop.Upstream {
	if !h.cloud.Healthy() {
		return nil
	}
	return h.sources.Cloud
}

// learned follows another history of the cloud. What is kept of it for the time without it is of before, wherever this
// hub heard of that: a store that went on would take the truth for the word of a server that lags.
func (h *Hub) learned(number uint64, cloud bool) {
	if cloud {
		h.overrule(number)
		return
	}
	h.door.Consistency.Reset()
	h.shelter.History(number)
	if h.directory != nil {
		h.board().Reset()
	}
}

// overrule tells all feeders which history the cloud is in. One may be able to prove what another cannot.
func (h *Hub) overrule(number uint64) {
	h.shelter.History(number)
	h.door.Consistency.Reset()
	for _, f := range h.sources.All() {
		f.Overrule(number)
	}
}

// maxAge is how long ago a stream from the cloud may have given its last sign to be fresh.
func (h *Hub) maxAge() time.Duration { return h.UpstreamWatchTimeout * 5 / 2 }

// Addr is where the API is served.
func (h *Hub) Addr() net.Addr { return h.secure.Addr() }

// HealthAddr is where health, metrics and status are served.
func (h *Hub) HealthAddr() net.Addr { return h.health.Addr() }

// asks is the way of requests for certificates: as the node. The hub's own user may only read.
func (h *Hub) asks() http.RoundTripper { return h.cloud.Way(uplink.ClassNode, uplink.AsNode) }
