package pooldoor

import (
	"context"
	"net/http"
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/exchange"
	"github.com/weir-edge/weir/impl/heartbeat"
	"github.com/weir-edge/weir/impl/hub/coordinator"
)

// RollCall is the way of a hub to the desks of its pool: its own while it is a leader hub, else those of the
// coordinator.
type RollCall struct {
	Coordinator *coordinator.Client
	Desk        *Desk
	Timeout     time.Duration
}

// own is the desk of this hub, nil while it is no leader hub.
func (r *RollCall) own() *exchange.RollCall {
	if r.Desk.Leases.IsOpen() {
		return &r.Desk.roll
	}
	return nil
}

// HandIn implements beat.Desk.
func (r *RollCall) HandIn(ctx context.Context, e heartbeat.Entry) (n heartbeat.Notice, err error) {
	if own := r.own(); own != nil {
		return own.HandIn(e)
	}
	_, err = r.Coordinator.Do(ctx, http.MethodPut, contract.RollPath, e, &n)
	return n, err
}

// Exchange implements beat.Desks. Hubs use any replica of a coordinator, so all are asked.
func (r *RollCall) Exchange(ctx context.Context, n heartbeat.Notice) (all []heartbeat.Entry) {
	if own := r.own(); own != nil {
		all, _ = own.Exchange(n) // a notice that has no bound was refused before
		return all
	}
	for _, replica := range r.Coordinator.Replicas() {
		limit, cancel := context.WithTimeout(ctx, r.Timeout)
		var entries []heartbeat.Entry
		if _, err := replica.Do(limit, http.MethodPost, contract.RollPath, n, &entries); err == nil {
			all = append(all, entries...)
		}
		cancel()
	}
	return all
}
