package member

import "time"

// heritage decides when the next process of the node is told the identity of this one.
type heritage struct {
	holds bool      // this process holds the election Lease, as far as it knows
	since time.Time // when it was first seen to
	left  bool
}

// due reports, once, that it is time: this process has held the election Lease for as long as a Lease lasts, or holds
// it when it is told to end. A process that fails before, perhaps because it leads, leaves nothing, so that others get
// to lead.
func (h *heritage) due(now time.Time, lasts time.Duration, holds, told bool) bool {
	if holds && !h.holds {
		h.since = now
	}
	h.holds = holds
	if h.left || !holds || !told && now.Before(h.since.Add(lasts)) {
		return false
	}
	h.left = true
	return true
}
