package offline

import "github.com/prometheus/client_golang/prometheus"

// counters are the metrics of recording and of answers without the cloud.
type counters struct {
	recorded, answers *prometheus.CounterVec
	caughtUp          prometheus.Counter
	leftAlone         prometheus.Counter
	watches           prometheus.Gauge
}

func newCounters() *counters {
	return &counters{
		recorded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_offline_recorded_total",
			Help: "Answers of the cloud that were looked at, by verb and outcome (kept, no form, broken off, behind, failed).",
		}, []string{"verb", "outcome"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_offline_answers_total",
			Help: "Reads answered without the cloud, by verb and outcome (known, unknown).",
		}, []string{"verb", "outcome"}),
		caughtUp: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_offline_catch_up_lists_total",
			Help: "Lists that the hub asked for because a client resumed a watch at a version that the store had not reached.",
		}),
		leftAlone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_offline_lists_left_alone_total",
			Help: "Resumed watches for which the hub asked for no list, since the store could not keep the one before; after " +
				"each it waits twice as long, a minute to an hour.",
		}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "weir_offline_watches", Help: "Watches that are open without the cloud.",
		}),
	}
}

func (c *counters) all() []prometheus.Collector {
	return []prometheus.Collector{c.recorded, c.answers, c.caughtUp, c.leftAlone, c.watches}
}

// Describe implements prometheus.Collector.
func (c *counters) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.all() {
		m.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (c *counters) Collect(ch chan<- prometheus.Metric) {
	for _, m := range c.all() {
		m.Collect(ch)
	}
}
