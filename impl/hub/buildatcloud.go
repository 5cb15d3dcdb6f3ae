package hub

import (
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
)

// buildAtCloud gets the certificate of the hub's own user.
func (h *Hub) buildAtCloud() (*uplink.User, error) {
	a := uplink.NewUser(uplink.UserConfig{
		Name: contract.HubUserPrefix + h.NodePoolName + ":" + h.NodeName, Node: contract.NodeUserPrefix + h.NodeName,
		OfNode: h.node, Shows: h.shows, Now: h.time.Now,
		Clock: h.clock, Logger: h.Logger, Changed: func() {
			h.cloud.RenewAs(uplink.AsHub)
		}, Swept: func() { h.cloud.Sweep() },
	})
	k, err := h.byToken(enrol.Config{Identity: pki.Must(pki.HubAtCloud), Changed: a.Poke})
	if err != nil {
		return nil, err
	}
	a.Own = k
	return a, nil
}

// retry asks again for what failed because the cloud was away.
func (h *Hub) retry() {
	if h.cloud.Healthy() {
		for _, k := range h.keepers {
			k.Retry()
		}
	}
}
