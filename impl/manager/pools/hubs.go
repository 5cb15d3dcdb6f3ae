package pools

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/digest"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// Restore gives to a ledger what the status of a Pool has kept.
func Restore(l *Ledger, p *poolv1.Pool) {
	for _, h := range p.Status.Hubs {
		l.Restore(h.Node, Entry{Told: h.Told.Time, Digest: h.Digest()})
		if h.Reads != nil {
			l.RestoreReads(h.Node, readsFrom(h.Reads))
		}
	}
}

// tell writes into the status of a Pool what the hubs of its nodes told. What this process has not heard stays as it
// was.
func tell(s *poolv1.Status, v *view) {
	before := map[string]poolv1.Hub{}
	for _, h := range s.Hubs {
		before[h.Node] = h
	}
	s.Hubs, s.FreshnessSeconds, s.UplinkBytes, s.SavedBytes = nil, nil, nil, nil
	for i := range v.nodes {
		h, told := before[v.nodes[i].Name]
		if e, heard := v.told(v.nodes[i].Name); heard {
			reads := h.Reads
			if e.Reads != nil {
				reads = readsOf(*e.Reads)
			}
			h, told = hub(v.nodes[i].Name, e), true
			h.Reads = reads
		}
		if told {
			s.Hubs = append(s.Hubs, h)
		}
	}
	slices.SortFunc(s.Hubs, func(a, b poolv1.Hub) int { return strings.Compare(a.Node, b.Node) })
	for _, h := range s.Hubs {
		if h.FreshnessSeconds != nil && (s.FreshnessSeconds == nil || *h.FreshnessSeconds > *s.FreshnessSeconds) {
			s.FreshnessSeconds = new(*h.FreshnessSeconds)
		}
		add(&s.UplinkBytes, h.UplinkDownBytes+h.UplinkUpBytes)
		add(&s.SavedBytes, h.ServedBytes-h.FeedBytes)
	}
	s.Hubs = s.Hubs[:min(len(s.Hubs), poolv1.MaxHubs)]
}

func hub(node string, e Entry) poolv1.Hub {
	h := poolv1.Hub{
		Node: node, Version: e.Version, Role: string(e.Role), Cause: e.Cause,
		Told: metav1.Time{Time: e.Told.Truncate(time.Second)}, Started: metav1.Time{Time: e.Started},
		UplinkDownBytes: e.Down, UplinkUpBytes: e.Up, FeedBytes: e.Feed, ServedBytes: e.Served,
	}
	if i := e.Images; i != (digest.Images{}) {
		h.Images = &poolv1.HubImages{PulledBytes: i.Pulled, SavedBytes: i.Saved, ServedBytes: i.Served}
	}
	h.Tell(e.Digest)
	if e.Age >= 0 {
		h.FreshnessSeconds = new(int64(e.Age / time.Second))
	}
	return h
}

// readsOf are reads as the status of a Pool has them.
func readsOf(e ReadsEntry) *poolv1.Reads {
	r := &poolv1.Reads{
		Told: metav1.Time{Time: e.Told.Truncate(time.Second)}, PassedRestBytes: e.Rest, Unread: e.Unread,
	}
	for _, p := range e.Passed {
		r.Passed = append(r.Passed, poolv1.PassedReads{Resource: p.Resource, Bytes: p.Bytes})
	}
	return r
}

// readsFrom reads them there.
func readsFrom(r *poolv1.Reads) ReadsEntry {
	e := ReadsEntry{digest.Reads{Rest: r.PassedRestBytes, Unread: r.Unread}, r.Told.Time}
	for _, p := range r.Passed {
		e.Passed = append(e.Passed, digest.Passed{Resource: p.Resource, Bytes: p.Bytes})
	}
	return e
}

func add(sum **int64, n int64) {
	if *sum == nil {
		*sum = new(int64)
	}
	**sum += n
}

// leads is the node whose hub told last that it leads. One that led before it may have died with that word.
func leads(hubs []poolv1.Hub) (node string) {
	var last time.Time
	for _, h := range hubs {
		if h.Role == string(digest.Leader) && h.Told.After(last) {
			node, last = h.Node, h.Told.Time
		}
	}
	return node
}
