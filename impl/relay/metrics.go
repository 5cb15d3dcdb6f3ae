package relay

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
)

// NewCollector exports the state and counts of relays to Prometheus, labelled by resource: of those that there are when
// it is asked.
func NewCollector(relays func() []*Relay) prometheus.Collector { return collector(relays) }

type collector func() []*Relay

// Describe implements prometheus.Collector.
func (c collector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, ch) }

// Collect implements prometheus.Collector.
func (c collector) Collect(ch chan<- prometheus.Metric) {
	for _, r := range c() {
		s := r.Status()
		r.mu.RLock()
		counts := r.counts
		counts.closed = maps.Clone(counts.closed)
		r.mu.RUnlock()
		tell := func(kind prometheus.ValueType, name, help string, value float64, label, of []string) {
			desc := prometheus.NewDesc("weir_relay_"+name, help, append([]string{"resource"}, label...), nil)
			ch <- prometheus.MustNewConstMetric(desc, kind, value, append([]string{r.cfg.Resource.String()}, of...)...)
		}
		gauge := func(name, help string, value float64) { tell(prometheus.GaugeValue, name, help, value, nil, nil) }
		counter := func(name, help string, value uint64) {
			tell(prometheus.CounterValue, name, help, float64(value), nil, nil)
		}
		gauge("synced", "1 once the relay holds a list.", number(s.Synced))
		gauge("restored", "1 while the relay serves what a snapshot held and its source has shown no sign since.",
			number(s.Restored))
		gauge("resource_version", "resourceVersion that the relay has reached.", float64(s.Version))
		gauge("history",
			"Number of the cloud's history that versions are of: it grows when the cloud was restored from a backup.",
			float64(s.History.Number))
		gauge("oldest_resource_version", "Oldest resourceVersion from which a watch can resume.", float64(s.Oldest))
		gauge("objects", "Objects held.", float64(s.Objects))
		gauge("object_bytes", "Bytes of the objects held.", float64(s.Bytes))
		gauge("ring_events", "Events kept for watchers.", float64(s.RingEvents))
		gauge("ring_bytes", "Bytes of the events kept for watchers.", float64(s.RingBytes))
		gauge("streams", "Watches and lists being served.", float64(s.Watchers))
		if age, ok := s.Age(r.cfg.Clock.Now()); ok {
			gauge("progress_age_seconds", "Seconds since the last list, event or bookmark from upstream.", age.Seconds())
		}
		counter("lists_total", "Lists taken from upstream.", counts.replaced)
		counter("events_total", "Events taken from upstream.", counts.applied)
		counter("events_dropped_total", "Events dropped because the relay had passed their version.", counts.dropped)
		counter("flushes_total", "Times the history was thrown away because a list contradicted it.", counts.flushed)
		counter("histories_total",
			"Times the history of the cloud was found to be another one, so that all clients had to list.", counts.histories)
		for reason, n := range counts.closed {
			tell(prometheus.CounterValue, "streams_closed_total",
				"Streams that the relay ended because their client was too slow.", float64(n),
				[]string{"reason"}, []string{reason})
		}
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
