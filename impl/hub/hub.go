package hub

import (
	"net"

	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
)

// Hub is the one door of a node to the Kubernetes API. Its parts stand in the order in which they are built: each knows
// those above it, and none below: build in run.go puts it together. See the package comment.
type Hub struct {
	self *membership.Member
	*machine
	told
	*credentials
	links
	*shared
	own
	alone
	inPool
	filters *filter.Filters  // nil: all see what the cloud shows
	mirror  *pooldoor.Mirror // of registries
	door    *door.Door
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
	h.look()
}

// retry asks again for what failed because the cloud was away.
func (h *Hub) retry() {
	if h.cloud.Healthy() {
		for _, k := range h.keepers {
			k.Retry()
		}
	}
}

// Addr is where the API is served.
func (h *Hub) Addr() net.Addr { return h.secure.Addr() }

// HealthAddr is where health, metrics and status are served.
func (h *Hub) HealthAddr() net.Addr { return h.health.Addr() }
