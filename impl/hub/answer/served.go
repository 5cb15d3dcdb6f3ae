package answer

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// ByRelay is the route of what relays answer. No matter where it comes from, an error is nothing that a client came
// for: it counts by itself.
const (
	ByRelay = "relay"
	byError = "error"
)

// Served counts the bytes of answers that clients of this node got, as they were written: encoded and perhaps
// compressed, without headers and TLS. What flows behind an upgrade (exec, attach, port-forward) is not an answer. A
// filter alters answers behind this.
type Served struct{ routes sync.Map } // of *atomic.Int64, by name

// by is the count of a route.
func (s *Served) by(route string) *atomic.Int64 {
	n, ok := s.routes.Load(route)
	if !ok {
		n, _ = s.routes.LoadOrStore(route, new(atomic.Int64))
	}
	return n.(*atomic.Int64)
}

// Bytes are those of a route so far.
func (s *Served) Bytes(route string) int64 { return s.by(route).Load() }

var served = prometheus.NewDesc("weir_hub_served_bytes_total",
	"Bytes of answers that clients of this node got, by route (relay, cloud, store, queue, heartbeat, kubelet), and "+
		"errors by themselves (error).", []string{"route"}, nil)

// Describe implements prometheus.Collector.
func (s *Served) Describe(ch chan<- *prometheus.Desc) { ch <- served }

// Collect implements prometheus.Collector.
func (s *Served) Collect(ch chan<- prometheus.Metric) {
	s.routes.Range(func(route, n any) bool {
		ch <- prometheus.MustNewConstMetric(served, prometheus.CounterValue, float64(n.(*atomic.Int64).Load()),
			route.(string))
		return true
	})
}
