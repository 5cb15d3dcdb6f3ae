package store

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-edge/weir/impl/store/queue"
)

// Stats tells what the store holds and did.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := s.stats
	st.Collections, st.PendingBytes, st.FreshAt = len(s.collections), s.pending.Bytes, s.freshAt
	for _, c := range s.collections {
		if c.complete {
			st.Complete++
		}
		if c.watches > 0 {
			st.Watched++
		}
	}
	if s.db != nil {
		st.FileBytes, st.UsedBytes = s.db.Size()
	}
	return st
}

var _ prometheus.Collector = (*Store)(nil)

// Describe implements prometheus.Collector.
func (s *Store) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(s, ch) }

// Collect implements prometheus.Collector.
func (s *Store) Collect(ch chan<- prometheus.Metric) {
	metric := func(kind prometheus.ValueType, name, help string, v float64) {
		ch <- prometheus.MustNewConstMetric(prometheus.NewDesc("weir_"+name, help, nil, nil), kind, v)
	}
	counter := func(name, help string, v int) { metric(prometheus.CounterValue, name, help, float64(v)) }
	gauge := func(name, help string, v int) { metric(prometheus.GaugeValue, name, help, float64(v)) }
	st, q := s.Stats(), s.queue.Stats()
	gauge("store_bytes", "Size of the store's file.", int(st.FileBytes))
	gauge("store_used_bytes", "Bytes of the file that are in use.", int(st.UsedBytes))
	gauge("store_pending_bytes", "Bytes that wait to be written.", st.PendingBytes)
	gauge("store_collections", "Collections that clients asked for.", st.Collections)
	gauge("store_complete_collections", "Collections that can be served without the cloud.", st.Complete)
	counter("store_bytes_written_total", "Bytes written to the store's file.", int(st.Written))
	counter("store_errors_total", "Writes that failed.", st.Errors)
	counter("store_damaged_rows_total", "Rows that were damaged and dropped.", st.DamagedRows)
	counter("store_set_aside_total",
		"Files that could not be used and were removed, or put aside because another version has written them.", st.SetAside)
	counter("store_evicted_components_total", "Components dropped to make room.", st.Evicted)
	gauge("queue_entries", "Writes that wait for the cloud.", q.Entries)
	gauge("queue_events", "Events among them.", q.Events)
	gauge("queue_bytes", "Size of the queue's file.", int(q.FileBytes))
	gauge("queue_damaged_bytes", "Bytes of the queue's file that could not be read at the start.", q.DamagedByte)
	counter("queue_bytes_written_total", "Bytes written to the queue's file.", int(q.WrittenBytes))
	counter("queue_refused_total", "Writes that were not taken.", q.Refused)
	counter("queue_pushed_total", "Entries pushed to the cloud.", q.Pushed)
	dropped := prometheus.NewDesc("weir_queue_dropped_total",
		"Entries that were dropped, by reason: the object was deleted, or replaced by another; the cloud refused it; it "+
			"was unusable.", []string{"why"}, nil)
	for _, why := range queue.Whys() {
		ch <- prometheus.MustNewConstMetric(dropped, prometheus.CounterValue, float64(q.Why[why]), string(why))
	}
}
