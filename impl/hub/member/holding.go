package member

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

// holding is what the relays hold, as the role machine has to know it. It is of the loop.
type holding struct {
	relays func() []*relay.Relay
	maxAge time.Duration // of the last sign of a stream from the cloud
	grace  time.Duration
	stale  map[*relay.Relay]uint64 // versions of relays that are not fresh
}

// look fills in what is of the relays. One that holds nothing, beside others that do, need not wait as long: see role.Detours.
func (h *holding) look(now time.Time, in *role.Input) {
	maps.DeleteFunc(h.stale, func(r *relay.Relay, _ uint64) bool { return !slices.Contains(h.relays(), r) })
	in.Have, in.Restored, in.Aged = false, false, false
	for _, r := range h.relays() {
		s := r.Status()
		age, ok := s.Age(now)
		in.Have, in.Restored = in.Have || s.Synced, in.Restored || s.Restored && s.Denied == ""
		in.Aged = in.Aged || s.Denied == "" && ok && age > h.grace
		if h.moved(r, s.Fresh(now, h.maxAge), s.Version) {
			in.Reached++
		}
	}
}

// moved tells whether a relay has moved since it was last seen not to be fresh. That it has just ceased to be fresh is no movement.
func (h *holding) moved(r *relay.Relay, fresh bool, version uint64) bool {
	last, stale := h.stale[r]
	if fresh {
		delete(h.stale, r)
		return false
	}
	h.stale[r] = version
	return stale && version != last
}
