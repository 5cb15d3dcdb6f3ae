package estimate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Families of metrics that count.
const (
	received = "apiserver_watch_cache_events_received_total"
	requests = "apiserver_request_total"
	sizeSum  = "apiserver_watch_events_sizes_sum"
	sizeN    = "apiserver_watch_events_sizes_count"
	watches  = "apiserver_longrunning_requests"
	started  = "process_start_time_seconds"
)

const maxMetrics = 64 << 20 // bytes of the lines that count

// reading is what one read of the metrics says.
type reading struct {
	received map[string]float64 // changes that kube-apiserver saw; empty before Kubernetes 1.33
	written  map[string]float64 // writes that it answered
	pods     float64            // created
	sum, n   map[string]float64 // bytes and number of what watches got
	watches  map[string]float64 // of all objects, that are open
	started  float64
}

// readMetrics reads the text of /metrics.
func readMetrics(r io.Reader) (*reading, error) {
	text, err := kept(r)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	m := &reading{
		received: map[string]float64{}, written: map[string]float64{}, sum: map[string]float64{}, n: map[string]float64{},
		watches: map[string]float64{},
	}
	for name, f := range families {
		for _, one := range f.GetMetric() {
			m.take(name, labels(one), value(one))
		}
	}
	if m.started == 0 || len(m.written) == 0 {
		return nil, errors.New("read metrics: these are not those of a kube-apiserver")
	}
	return m, nil
}

// kept are the lines of the families that count: a large cluster has a hundred times as many. Histograms are read as
// their sums, which have no type of their own without the comment.
func kept(r io.Reader) ([]byte, error) {
	var all bytes.Buffer
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, long, err := readLine(lines)
		name, _, _ := strings.Cut(string(line[:min(len(line), 64)]), "{")
		name, _, _ = strings.Cut(name, " ")
		switch name {
		case received, requests, sizeSum, sizeN, watches, started:
			if all.Len()+len(line) > maxMetrics || long {
				return nil, fmt.Errorf("read metrics: longer than %d MiB", maxMetrics>>20)
			}
			all.Write(line)
		}
		if errors.Is(err, io.EOF) {
			if n := all.Len(); n > 0 && all.Bytes()[n-1] != '\n' {
				all.WriteByte('\n')
			}
			return all.Bytes(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("read metrics: %w", err)
		}
	}
}

func labels(m *dto.Metric) map[string]string {
	all := map[string]string{}
	for _, l := range m.GetLabel() {
		all[l.GetName()] = l.GetValue()
	}
	return all
}

func value(m *dto.Metric) float64 {
	v := m.GetUntyped().GetValue()
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0
	}
	return v
}

func (m *reading) take(family string, l map[string]string, v float64) {
	name := resourceName(l["resource"], l["group"])
	switch {
	case family == started:
		m.started = v
	case l["resource"] == "":
	case family == received:
		m.received[name] += v
	case family == sizeSum:
		m.sum[name] += v
	case family == sizeN:
		m.n[name] += v
	case family == watches && l["verb"] == "WATCH" && l["scope"] == "cluster" && l["subresource"] == "":
		m.watches[name] += v
	case family == requests && l["dry_run"] == "" && strings.HasPrefix(l["code"], "2"):
		switch sub := l["subresource"]; l["verb"] {
		case "POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION":
			if sub == "" || sub == "status" {
				m.written[name] += v
			}
			if l["verb"] == "POST" && name == pods && sub == "" {
				m.pods += v
			}
		}
	}
}

// between are the rates between two reads. nodes is how many the cluster has.
func between(was, is *reading, took time.Duration, nodes int) (*Rates, error) {
	if was.started != is.started {
		return nil, errors.New("the two reads were answered by different kube-apiservers, or it was started again: name " +
			"one by --server")
	}
	r := newRates(Metrics)
	r.Took = took
	before, after := was.received, is.received
	if len(after) == 0 {
		before, after = was.written, is.written
		r.Notes = append(r.Notes, "Changes are the writes that one kube-apiserver answered. Where there are several, the "+
			"others' are missing.")
	}
	for name, v := range after {
		if v > before[name] {
			r.Changes[name] = v - before[name]
		}
	}
	r.Pods = max(is.pods-was.pods, 0)
	for name, n := range is.n {
		switch recent := n - was.n[name]; {
		case recent > 0:
			r.Sizes[name] = (is.sum[name] - was.sum[name]) / recent
		case n > 0:
			r.Sizes[name] = is.sum[name] / n
		}
	}
	r.clients(is, nodes)
	return r, nil
}

// fewNodes is how many are too few to tell their clients from those of the control plane, which has up to that many.
const fewNodes = 10

// clients are the watches of each node: all that are open, less what is left when all nodes have the same.
func (r *Rates) clients(m *reading, n int) {
	if n < fewNodes {
		return
	}
	if m.watches[services] < float64(n) { // each kubelet has one
		r.Notes = append(r.Notes, "This kube-apiserver has the watches of some nodes only: there are several of it.")
		return
	}
	r.Clients = map[string]float64{}
	for name, open := range m.watches {
		if each := math.Floor(open / float64(n)); each > 0 {
			r.Clients[name] = each
		}
	}
}
