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
	d.Edges = h.edges()
	return d
}

// edges are those that fail, as they were in the digest.
func (h *Hub) edges() digest.Edges {
	var named []digest.Edge
	for _, e := range h.Edges {
		named = append(named, digest.Edge{Way: digest.WayOf(e.Way), Peer: e.Peer, Port: e.Port, Cause: e.Cause})
	}
	return digest.Restored(int(h.FailingEdges), named)
}

// Tell takes the edges of a digest.
func (h *Hub) Tell(d digest.Digest) {
	count, named := d.Edges.List()
	h.FailingEdges, h.Edges = int32(count), nil //nolint:gosec // four digits
	for _, e := range named {
		h.Edges = append(h.Edges, HubEdge{Way: e.Way.String(), Peer: e.Peer, Port: e.Port, Cause: e.Cause})
	}
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
