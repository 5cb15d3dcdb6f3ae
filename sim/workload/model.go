package workload

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// readyShare of all endpoints are ready at first.
const readyShare = 0.97

// service is the state that a Service, its slices and its Endpoints should have.
type service struct {
	namespace, name string
	template        string // hash in the names of its pods
	slices          []*slice
	trigger         time.Time // of its last change

	uid              types.UID // by the server
	endpointsVersion string    // by the server
}

// slice is one EndpointSlice.
type slice struct {
	name      string
	endpoints []endpoint
	hidden    bool // kube-proxy's label selector leaves it out

	version string // by the server
}

// endpoint is one pod.
type endpoint struct {
	ip, node, pod string
	uid           types.UID
	ready         bool
}

// zone is the zone of the node: the name of its pool.
func (e endpoint) zone() string {
	if i := strings.LastIndexByte(e.node, '-'); i > 0 {
		return e.node[:i]
	}
	return e.node
}

// namespaces and applications are the parts of the names of services.
var (
	namespaces   = [...]string{"shop", "billing", "media", "search", "telemetry"}
	applications = [...]string{
		"cart", "catalog", "checkout", "gateway", "ledger", "orders", "players", "ranking", "sessions", "stock",
	}
)

// newService makes the i-th service.
func (w *Workload) newService(i int) *service {
	s := &service{
		namespace: namespaces[i%len(namespaces)],
		name:      fmt.Sprintf("%s-%02d", applications[w.content.IntN(len(applications))], i),
		template:  w.content.suffix(10),
		trigger:   w.base,
	}
	for left := w.config.Endpoints; left > 0; left -= sliceSize {
		s.slices = append(s.slices, w.newSlice(w.content, s, min(left, sliceSize), readyShare))
	}
	return s
}

func (w *Workload) newSlice(r random, s *service, size int, ready float64) *slice {
	sl := &slice{name: s.name + "-" + r.suffix(5)}
	for range size {
		sl.endpoints = append(sl.endpoints, w.newEndpoint(r, s, r.Float64() < ready))
	}
	return sl
}

func (w *Workload) newEndpoint(r random, s *service, ready bool) endpoint {
	w.pods++
	return endpoint{
		ip:    podIP(w.pods),
		node:  w.config.Nodes[r.IntN(len(w.config.Nodes))],
		pod:   s.name + "-" + s.template + "-" + r.suffix(5),
		uid:   r.uid(),
		ready: ready,
	}
}
