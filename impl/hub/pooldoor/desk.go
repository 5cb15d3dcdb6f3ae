package pooldoor

import (
	"net/http"
	"strings"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/limit"
)

// Desk is all that a leader hub shows beside its relays.
type Desk struct {
	Standing *Standing
	Leases   *lease.Store
	roll     exchange.RollCall
	moved    exchange.Moved
	images   exchange.Images
	reach    exchange.CallBacks
	slots    limit.Slots
}

// NewDesk makes that of a hub.
func NewDesk(s *Standing, l *lease.Store, c clock.PassiveClock) *Desk {
	return &Desk{
		Standing: s, Leases: l, moved: exchange.Moved{Clock: c}, images: exchange.Images{Clock: c},
		reach: exchange.CallBacks{Clock: c},
		slots: limit.Slots{Each: limit.MaxPeerRequests, Sum: limit.MaxPeersRequests},
	}
}

// Handle shows it at a port, whose callers are hubs of the pool.
func (d *Desk) Handle(at *http.ServeMux) {
	at.Handle("GET "+contract.StandingPath, d.Standing)
	own := d.Leases.Handler(Caller)
	at.Handle("GET "+lease.Path+"/{name}", own)
	at.Handle("PUT "+lease.Path+"/{name}", own)
	at.Handle("POST "+lease.Path, own)
	at.Handle("POST "+contract.MovedPath, d.moved.Handler(Caller))
	at.Handle("POST "+contract.ImagesPath, d.leading(d.images.Handler(Caller)))
	at.Handle("POST "+contract.ReachPath, d.reach.Handler(Caller))
	entries := d.roll.Handler(Caller, func(string) bool { return false }) // this hub itself collects them
	at.Handle("PUT "+contract.RollPath, d.leading(entries))
}

// leading serves while this hub is a leader hub.
func (d *Desk) leading(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !d.Leases.IsOpen() {
			http.Error(w, "this hub is no leader hub", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, req)
	})
}

// Caller is the node of the hub that asks, "" if it is none.
func Caller(req *http.Request) string {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return ""
	}
	node, ok := strings.CutPrefix(req.TLS.PeerCertificates[0].Subject.CommonName, contract.NodeUserPrefix)
	if !ok {
		return ""
	}
	return node
}

// Enter lets one request of a peer begin, unless it has too many under way, or all have. leave is to be called when it
// ends.
func (d *Desk) Enter(req *http.Request) (leave func(), ok bool) {
	key := req.TLS.PeerCertificates[0].Subject.CommonName
	if d.slots.Enter(key) != "" {
		return nil, false
	}
	return func() { d.slots.Leave(key) }, true
}
