package runner

import (
	"time"

	"github.com/weir-edge/weir/sim/link"
	"github.com/weir-edge/weir/sim/runtime"
)

// bucket is the grain in which peaks are looked for.
const bucket = time.Second

// jitter is what crossed the link while hubs left a pool's cache that was gone for the cloud, one by one, and read
// there: from the first one's connection until the cache was back. Without the time behind the last one the mean would
// be that of a ramp.
type jitter struct {
	began       time.Time // of the fault
	first, last time.Time // connections
	end         time.Time
	switched    map[string]bool // nodes; the one that led is none: its streams stay
	bytes, peak int64           // of class pool, both ways, of the nodes that switched; of one bucket
	buckets     int
}

// findJitter finds the window of an episode, nil if less than two nodes switched in it.
func findJitter(e *episode, connections []link.Connection, samples []link.Sample) *jitter {
	j := &jitter{switched: map[string]bool{}, began: e.began, end: e.healed}
	for _, c := range connections {
		if c.Class != runtime.ClassPool || c.Opened.Before(e.began) || c.Opened.After(e.healed) {
			continue
		}
		if j.first.IsZero() || c.Opened.Before(j.first) {
			j.first = c.Opened
		}
		if c.Opened.After(j.last) {
			j.last = c.Opened
		}
		j.switched[c.Node] = true
	}
	if len(j.switched) < 2 {
		return nil
	}
	buckets := map[time.Time]int64{}
	for _, s := range samples {
		if s.Class == runtime.ClassPool && j.switched[s.Node] && s.At.After(j.first.Add(-bucket)) &&
			s.At.Before(j.end.Add(-bucket)) {
			buckets[s.At] += s.Bytes
			j.bytes += s.Bytes
		}
	}
	for _, n := range buckets {
		j.peak = max(j.peak, n)
	}
	j.buckets = len(buckets)
	return j
}

// addJitter measures the widest jitter window of all faults.
func (r *run) addJitter() {
	var widest *jitter
	for i := range r.faults {
		e := &r.faults[i]
		if e.deed.Leader != "" || e.deed.CutOff {
			continue
		}
		l := r.site.Link(e.deed.Pool.Name)
		if j := findJitter(e, l.Connections(), l.Series(bucket)); j != nil &&
			(widest == nil || len(j.switched) > len(widest.switched)) {
			widest = j
		}
	}
	if widest == nil {
		return
	}
	nodes := float64(len(widest.switched))
	changes := float64(r.truth().bytes(widest.first, widest.end))
	r.metrics["jitter_nodes"] = nodes
	r.metrics["jitter_first_seconds"] = widest.first.Sub(widest.began).Seconds()
	r.metrics["jitter_seconds"] = widest.last.Sub(widest.first).Seconds()
	r.metrics["jitter_peak_ratio"] = float64(widest.peak) / (float64(widest.bytes) / float64(widest.buckets))
	if changes > 0 {
		r.metrics["jitter_changes_ratio"] = float64(widest.bytes) / (changes * nodes)
		r.metrics["jitter_stock_ratio"] = (float64(r.fullList) + changes) / changes
	}
}
