package member

import (
	"time"

	"github.com/weir-edge/weir/impl/role"
)

// holding is what the relays hold, as the role machine has to know it.
type holding struct {
	maxAge  time.Duration // of the last sign of a stream from the cloud
	grace   time.Duration
	stale   map[string]uint64 // versions of relays that are not fresh, by resource
	reached uint64            // grows when one of them moves
}

// look fills in what is of the relays. One that holds nothing, beside others that do, need not wait as long: see
// role.Detours.
func (h *holding) look(now time.Time, relays []Relay, in *role.Input) {
	before := h.stale
	h.stale = make(map[string]uint64, len(relays))
	for i := range relays {
		r := &relays[i]
		age, ok := r.Age(now)
		in.Have, in.Restored = in.Have || r.Synced, in.Restored || r.Restored && r.Status.Denied == ""
		in.Aged = in.Aged || r.Status.Denied == "" && ok && age > h.grace
		if r.Fresh(now, h.maxAge) {
			continue
		}
		h.stale[r.Name] = r.Version
		// That it has just ceased to be fresh is no movement.
		if last, was := before[r.Name]; was && last != r.Version {
			h.reached++
		}
	}
	in.Reached = h.reached
}
