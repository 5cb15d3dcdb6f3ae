package gate

import "github.com/prometheus/client_golang/prometheus"

var (
	waysDesc = prometheus.NewDesc("weir_gate_ways",
		"Connections of hubs that lead, by which the cloud reaches into their pools, of each pool that has one.",
		[]string{"pool"}, nil)
	cameDesc = prometheus.NewDesc("weir_gate_ways_total", "Connections of hubs that were taken so far.", nil, nil)
	openDesc = prometheus.NewDesc("weir_gate_connects",
		"Connections that were asked for by CONNECT and are under way.", nil, nil)
	connectsDesc = prometheus.NewDesc("weir_gate_connects_total",
		"Connections that were asked for by CONNECT, by how that went: opened, denied, or why it did not come about.",
		[]string{"result"}, nil)
	bytesDesc = prometheus.NewDesc("weir_gate_connect_bytes_total",
		"Bytes of connections by CONNECT that are over: up is to the caller, down from it.", []string{"direction"}, nil)
)

// Describe implements prometheus.Collector.
func (x *wayIn) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{waysDesc, cameDesc, openDesc, connectsDesc, bytesDesc} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (x *wayIn) Collect(ch chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, n float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, n, labels...)
	}
	ways, front := x.ways.State(), x.front.State()
	of := map[string]float64{}
	for _, w := range ways.Ways {
		of[w.Pool]++
	}
	for pool, n := range of {
		send(waysDesc, prometheus.GaugeValue, n, pool)
	}
	send(cameDesc, prometheus.CounterValue, float64(ways.Came))
	send(openDesc, prometheus.GaugeValue, float64(front.Open))
	send(connectsDesc, prometheus.CounterValue, float64(front.Opened), "opened")
	send(connectsDesc, prometheus.CounterValue, float64(front.Denied), "denied")
	for kind, n := range front.Failed {
		send(connectsDesc, prometheus.CounterValue, float64(n), string(kind))
	}
	send(bytesDesc, prometheus.CounterValue, float64(front.UpBytes), "up")
	send(bytesDesc, prometheus.CounterValue, float64(front.DownBytes), "down")
}
