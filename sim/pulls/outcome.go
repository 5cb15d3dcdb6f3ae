package pulls

import (
	"slices"
	"time"

	"github.com/weir-edge/weir/sim/report"
)

// span is a stretch of time. Without an end it lasts.
type span struct{ from, to time.Time }

// overlap is how much of it lies between two moments.
func (s span) overlap(from, to time.Time) time.Duration {
	if s.from.After(from) {
		from = s.from
	}
	if !s.to.IsZero() && s.to.Before(to) {
		to = s.to
	}
	return max(to.Sub(from), 0)
}

// outcome is what came of a column.
type outcome struct {
	began, ended time.Time            // the first pull, and the end of the column
	nodes        int                  // that were to pull
	got          map[string]time.Time // when each node had the image
	cuts         []span               // of the whole pool
	crossed      int64                // bytes of class image over the uplink, both ways
	pulled       int64                // what one pull brings

	beats map[string][]time.Time // when the cloud saw heartbeats, by node
	away  map[string][]span      // when a node was off, or cut off alone
	lease time.Duration

	written []mark            // changes in the cloud meanwhile
	seen    map[string][]mark // what each node was shown of them
}

// measure makes metrics of it.
func (o outcome) measure(m report.Values, stock bool) {
	prefix := ""
	if stock {
		prefix = "stock_"
	} else {
		late := 0
		for node, beats := range o.beats {
			late += lateBeats(beats, o.began, o.ended, o.lease, append(slices.Clone(o.cuts), o.away[node]...))
		}
		m["late_heartbeats"] = float64(late)
	}
	if o.pulled > 0 {
		m[prefix+"image_bytes_ratio"] = float64(o.crossed) / float64(o.pulled)
	}
	m[prefix+"image_nodes"] = float64(len(o.got))
	last, offline := o.began, 0
	for _, at := range o.got {
		if at.After(last) {
			last = at
		}
		if slices.ContainsFunc(o.cuts, func(c span) bool { return at.After(c.from) && (c.to.IsZero() || at.Before(c.to)) }) {
			offline++
		}
	}
	if len(o.cuts) > 0 {
		m[prefix+"image_nodes_offline"] = float64(offline)
	}
	if len(o.written) > 0 {
		m[prefix+"cache_wait_seconds"] = o.longest().Seconds()
	}
	if len(o.got) == o.nodes {
		m[prefix+"image_seconds"] = last.Sub(o.began).Seconds()
	}
}

// lateBeats counts gaps between heartbeats that are longer than a Lease lasts, less the time in which none can come.
func lateBeats(beats []time.Time, from, to time.Time, lease time.Duration, away []span) (n int) {
	last := from
	for _, at := range append(slices.Clone(beats), to) {
		if !at.After(last) {
			continue
		}
		if at.After(to) {
			at = to
		}
		gap := at.Sub(last)
		for _, a := range away {
			gap -= a.overlap(last, at)
		}
		if gap > lease {
			n++
		}
		last = at
	}
	return n
}
