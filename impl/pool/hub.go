package pool

import (
	"time"

	"github.com/weir-edge/weir/impl/digest"
)

// Digest is what the hub told, as it was in its digest.
func (h *Hub) Digest() digest.Digest {
	d := digest.Digest{
		Version: h.Version, Role: digest.Role(h.Role), Cause: h.Cause, Age: digest.Unknown, Started: h.Started.UTC(),
		Down: h.UplinkDownBytes, Up: h.UplinkUpBytes, Feed: h.FeedBytes, Served: h.ServedBytes,
	}
	if h.FreshnessSeconds != nil {
		d.Age = time.Duration(*h.FreshnessSeconds) * time.Second
	}
	if i := h.Images; i != nil {
		d.Images = digest.Images{Pulled: i.PulledBytes, Saved: i.SavedBytes, Served: i.ServedBytes}
	}
	return d
}

// Hub is what the hub of a node has told; nil: nothing.
func (s *Status) Hub(node string) *Hub {
	for i := range s.Hubs {
		if s.Hubs[i].Node == node {
			return &s.Hubs[i]
		}
	}
	return nil
}
