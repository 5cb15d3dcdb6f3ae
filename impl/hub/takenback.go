package hub

import (
	"context"
	"crypto/x509"

	"github.com/weir-edge/weir/impl/enrol"
)

// takenBack tells why the pool refuses a certificate of this node.
func (h *Hub) takenBack(cert *x509.Certificate) error { return h.denied.Refuse(cert) }

// enrolled follows another certificate of this hub in its pool. weir-manager knows the node then, and grants the
// denylist to it, the authorities and the directory.
func (h *Hub) enrolled() {
	h.pool.Renew()
	h.board().Retry()
}

// refused follows an answer of the coordinator that it does not take this hub's certificate. It may have a sign of the
// cloud that this hub has not.
func (h *Hub) refused() {
	if k, ok := h.member.(*enrol.Keeper); ok && k.Hurry() {
		h.cloud.Ask()
	}
}

// heedDenylist looks, whenever there is another denylist, whether it revokes what this hub holds, until ctx ends. A hub
// that is on it asks for another certificate: it may be that its Node is there again. If it is not, weir-manager says
// no.
func (h *Hub) heedDenylist(ctx context.Context) {
	k, ok := h.member.(*enrol.Keeper)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		changed := h.denied.Changed()
		k.Look()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}
