package pools

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/digest"
)

var (
	info = prometheus.NewDesc("weir_manager_node_hub_info",
		"Always 1: which version of the hub a node runs, and its role in its pool, as it told last.",
		[]string{"pool", "node", "version", "role"}, nil)
	toldOf = prometheus.NewDesc("weir_manager_node_told_timestamp_seconds",
		"When the hub of a node last told of itself, Unix time.", []string{"pool", "node"}, nil)
	freshness = prometheus.NewDesc("weir_manager_node_freshness_seconds",
		"Age of the oldest relay of a node when its hub last told; absent if one was never filled, and two hours later.",
		[]string{"pool", "node"}, nil)
	uplink = prometheus.NewDesc("weir_manager_node_uplink_bytes_total",
		"Bytes between the hub of a node and the cloud, TLS included, as it told last.",
		[]string{"pool", "node", "direction"}, nil)
	feed = prometheus.NewDesc("weir_manager_node_feed_bytes_total",
		"Those of them, both ways, by which the hub fetched what its pool shares.", []string{"pool", "node"}, nil)
	served = prometheus.NewDesc("weir_manager_node_served_bytes_total",
		"Bytes that clients of a node got from its relays, as its hub told last.", []string{"pool", "node"}, nil)
	images = prometheus.NewDesc("weir_manager_node_images_bytes_total",
		"Bytes of images on a node, as its hub told last, by way: pulled (from registries, over the uplink), saved (read "+
			"from the pool instead), served (to the pool).", []string{"pool", "node", "way"}, nil)
	refused = prometheus.NewDesc("weir_manager_digest_refusals_total",
		"Rejected digests of hubs: they were invalid.", nil, nil)
)

// Describe implements prometheus.Collector.
func (l *Ledger) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, toldOf, freshness, uplink, feed, served, images, refused} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (l *Ledger) Collect(ch chan<- prometheus.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for node, pool := range l.pools {
		e, known := l.told[node]
		if !known || pool == "" {
			continue
		}
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, more ...string) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{pool, node}, more...)...)
		}
		send(info, prometheus.GaugeValue, 1, e.Version, string(e.Role))
		send(toldOf, prometheus.GaugeValue, float64(e.Told.Unix()))
		if e.Age >= 0 && l.clock.Since(e.Told) <= digest.Lapsed {
			send(freshness, prometheus.GaugeValue, e.Age.Seconds())
		}
		send(uplink, prometheus.CounterValue, float64(e.Down), "down")
		send(uplink, prometheus.CounterValue, float64(e.Up), "up")
		send(feed, prometheus.CounterValue, float64(e.Feed))
		send(served, prometheus.CounterValue, float64(e.Served))
		if i := e.Images; i != (digest.Images{}) {
			send(images, prometheus.CounterValue, float64(i.Pulled), "pulled")
			send(images, prometheus.CounterValue, float64(i.Saved), "saved")
			send(images, prometheus.CounterValue, float64(i.Served), "served")
		}
	}
	ch <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(l.refused))
}
