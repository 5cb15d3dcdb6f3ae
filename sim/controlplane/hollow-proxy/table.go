package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/pkg/proxy"
	"k8s.io/kubernetes/pkg/proxy/runner"
)

// How often kube-proxy writes its rules, by default.
const (
	minSync   = time.Second
	syncAgain = 30 * time.Second
	syncAtAll = time.Hour
)

// table is a proxier: where those of iptables and nftables write rules, it keeps them.
type table struct {
	node     string
	services *proxy.ServiceChangeTracker
	slices   *proxy.EndpointsChangeTracker
	runner   *runner.BoundedFrequencyRunner

	mu                     sync.Mutex // guards what follows
	hasServices, hasSlices bool
	labels                 map[string]string // of the Node, which say where it is
	ports                  proxy.ServicePortMap
	endpoints              proxy.EndpointsMap
	rules                  map[string][]string // by "address:port/protocol"; nil: there are none yet
}

var _ proxy.Provider = (*table)(nil)

func newTable(node string) *table {
	t := &table{
		node: node, ports: proxy.ServicePortMap{}, endpoints: proxy.EndpointsMap{},
		services: proxy.NewServiceChangeTracker(corev1.IPv4Protocol, nil, nil),
		slices:   proxy.NewEndpointsChangeTracker(corev1.IPv4Protocol, node, nil, nil),
	}
	t.runner = runner.NewBoundedFrequencyRunner("sync-runner", t.write, minSync, syncAgain, syncAtAll)
	return t
}

// write makes rules of all that was heard.
func (t *table) write() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.hasServices || !t.hasSlices {
		return nil
	}
	t.ports.Update(t.services)
	t.endpoints.Update(t.slices)
	t.rules = make(map[string][]string, len(t.ports))
	for name, port := range t.ports {
		_, _, all, _ := proxy.CategorizeEndpoints(t.endpoints[name], port, t.node, t.labels)
		to := make([]string, 0, len(all))
		for _, e := range all {
			to = append(to, e.String())
		}
		t.rules[port.String()] = to
	}
	return nil
}

func (t *table) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /route", func(w http.ResponseWriter, r *http.Request) {
		t.mu.Lock()
		to, ok := t.rules[r.FormValue("to")]
		begun := t.rules != nil
		t.mu.Unlock()
		switch {
		case !begun:
			http.Error(w, "kube-proxy has not read Services and EndpointSlices", http.StatusServiceUnavailable)
		case !ok:
			http.Error(w, "no Service is at "+r.FormValue("to"), http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(to)
		}
	})
	return mux
}

// Sync implements proxy.Provider.
func (t *table) Sync() { t.runner.Run() }

// SyncLoop implements proxy.Provider.
func (t *table) SyncLoop() { t.runner.Loop(wait.NeverStop) }

// OnServiceAdd implements proxy.Provider.
func (t *table) OnServiceAdd(s *corev1.Service) { t.OnServiceUpdate(nil, s) }

// OnServiceUpdate implements proxy.Provider.
func (t *table) OnServiceUpdate(before, s *corev1.Service) {
	if t.services.Update(before, s) {
		t.Sync()
	}
}

// OnServiceDelete implements proxy.Provider.
func (t *table) OnServiceDelete(s *corev1.Service) { t.OnServiceUpdate(s, nil) }

// OnServiceSynced implements proxy.Provider.
func (t *table) OnServiceSynced() { t.synced(&t.hasServices) }

// OnEndpointSliceAdd implements proxy.Provider.
func (t *table) OnEndpointSliceAdd(s *discoveryv1.EndpointSlice) { t.slice(s, false) }

// OnEndpointSliceUpdate implements proxy.Provider.
func (t *table) OnEndpointSliceUpdate(_, s *discoveryv1.EndpointSlice) { t.slice(s, false) }

// OnEndpointSliceDelete implements proxy.Provider.
func (t *table) OnEndpointSliceDelete(s *discoveryv1.EndpointSlice) { t.slice(s, true) }

// OnEndpointSlicesSynced implements proxy.Provider.
func (t *table) OnEndpointSlicesSynced() { t.synced(&t.hasSlices) }

// OnTopologyChange implements proxy.Provider.
func (t *table) OnTopologyChange(labels map[string]string) {
	t.mu.Lock()
	t.labels = labels
	t.mu.Unlock()
	t.Sync()
}

// OnServiceCIDRsChanged implements proxy.Provider. It is about NodePorts.
func (*table) OnServiceCIDRsChanged([]string) {}

func (t *table) slice(s *discoveryv1.EndpointSlice, gone bool) {
	if t.slices.EndpointSliceUpdate(s, gone) {
		t.Sync()
	}
}

// synced notes that all of a kind was heard, and writes rules at once, as kube-proxy does.
func (t *table) synced(what *bool) {
	t.mu.Lock()
	*what = true
	t.mu.Unlock()
	_ = t.write()
}
