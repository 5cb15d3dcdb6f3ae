package relay

import (
	"github.com/prometheus/client_golang/prometheus"
)

// NewCollector exports the state and counts of relays to Prometheus, labelled by resource.
func NewCollector(relays ...*Relay) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("weir_relay_"+name, help, append([]string{"resource"}, labels...), nil)
	}
	return &collector{
		relays:   relays,
		synced:   desc("synced", "1 once the relay holds a list."),
		version:  desc("resource_version", "resourceVersion that the relay has reached."),
		oldest:   desc("oldest_resource_version", "Oldest resourceVersion from which a watch can resume."),
		objects:  desc("objects", "Objects held."),
		bytes:    desc("object_bytes", "Bytes of the objects held."),
		events:   desc("ring_events", "Events kept for watchers."),
		ring:     desc("ring_bytes", "Bytes of the events kept for watchers."),
		streams:  desc("streams", "Watches and lists being served."),
		restored: desc("restored", "1 while the relay serves what a snapshot held and its source has shown no sign since."),
		progress: desc("progress_age_seconds", "Seconds since the last list, event or bookmark from upstream."),
		replaced: desc("lists_total", "Lists taken from upstream."),
		applied:  desc("events_total", "Events taken from upstream."),
		dropped:  desc("events_dropped_total", "Events dropped because the relay had passed their version."),
		flushed:  desc("flushes_total", "Times the history was thrown away because a list contradicted it."),
		history:  desc("history", "Number of the cloud's history that versions are of: it grows when the cloud was restored from a backup."),
		changed:  desc("histories_total", "Times the history of the cloud was found to be another one, so that all clients had to list."),
		closed:   desc("streams_closed_total", "Streams that the relay ended because their client was too slow.", "reason"),
	}
}

type collector struct {
	relays []*Relay

	synced, version, oldest, objects, bytes, events, ring, streams, restored, progress, replaced, applied, dropped, flushed, closed, history, changed *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for _, r := range c.relays {
		s, name := r.Status(), r.cfg.Resource.String()
		gauge := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, name)
		}
		gauge(c.synced, number(s.Synced))
		gauge(c.restored, number(s.Restored))
		gauge(c.version, float64(s.Version))
		gauge(c.history, float64(s.History.Number))
		gauge(c.oldest, float64(s.Oldest))
		gauge(c.objects, float64(s.Objects))
		gauge(c.bytes, float64(s.Bytes))
		gauge(c.events, float64(s.RingEvents))
		gauge(c.ring, float64(s.RingBytes))
		gauge(c.streams, float64(s.Watchers))
		if age, ok := s.Age(r.cfg.Clock.Now()); ok {
			gauge(c.progress, age.Seconds())
		}
		r.mu.RLock()
		counts := r.counts
		closed := make(map[string]uint64, len(counts.closed))
		for k, v := range counts.closed {
			closed[k] = v
		}
		r.mu.RUnlock()
		for d, v := range map[*prometheus.Desc]uint64{c.replaced: counts.replaced, c.applied: counts.applied, c.dropped: counts.dropped, c.flushed: counts.flushed, c.changed: counts.histories} {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), name)
		}
		for reason, v := range closed {
			ch <- prometheus.MustNewConstMetric(c.closed, prometheus.CounterValue, float64(v), name, reason)
		}
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
