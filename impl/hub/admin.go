package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source"
)

// admin is the handler of the health port. /v1/… are the paths of OpenYurt.
func (h *Hub) admin() http.Handler {
	mux := http.NewServeMux()
	healthz := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }
	for _, path := range []string{"/healthz", "/livez", "/v1/healthz"} {
		mux.HandleFunc("GET "+path, healthz)
	}
	for _, path := range []string{"/readyz", "/v1/readyz"} {
		mux.HandleFunc("GET "+path, h.readyz)
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.metrics.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET "+contract.StatusPath, h.serveStatus)
	return mux
}

// readyz is good once every relay can answer, or the cloud does in its place: clients of pool-scope resources get more than 503 then. While the cloud is
// there, what a relay holds must not be older than --max-stale-read either.
func (h *Hub) readyz(w http.ResponseWriter, _ *http.Request) {
	there := h.cloud.healthy()
	for i, f := range h.feeders {
		v := h.front.consistency.ages[i]
		switch {
		case f.unavailable():
		case !f.relay.Status().Synced:
			http.Error(w, f.resource+" is not synced yet", http.StatusServiceUnavailable)
			return
		case there && v.old():
			age, _ := v.age()
			http.Error(w, fmt.Sprintf("%s is not known to be fresh: what is held is of %v ago", f.resource, age.Round(time.Second)), http.StatusServiceUnavailable)
			return
		}
	}
	fmt.Fprintln(w, "ok")
}

// Status is what the hub says of itself at contract.StatusPath.
type Status struct {
	Node        string                `json:"node"`
	Pool        string                `json:"pool"`
	Role        string                `json:"role"`
	Reason      string                `json:"reason,omitempty"` // why it has this role
	Leader      string                `json:"leader,omitempty"` // identity that holds the election Lease
	Term        string                `json:"term,omitempty"`   // of the own leadership
	Source      string                `json:"source"`           // where relays are fed from
	Cloud       []ServerStatus        `json:"cloud"`
	Coordinator *CoordinatorStatus    `json:"coordinator,omitempty"`
	Heartbeat   HeartbeatStatus       `json:"heartbeat"`
	Delegation  *DelegationStatus     `json:"delegation,omitempty"` // of other nodes of the pool
	Offline     *OfflineStatus        `json:"offline,omitempty"`    // nil: nothing is kept
	Resources   []ResourceStatus      `json:"resources"`
	Bytes       map[class]BytesStatus `json:"bytes"` // to and from the cloud, by class
}

// HeartbeatStatus is what became of the heartbeats of this node's kubelet.
type HeartbeatStatus struct {
	Count  int       `json:"count"`
	Last   time.Time `json:"last,omitzero"`   // when the kubelet last gave a sign of life
	Passed time.Time `json:"passed,omitzero"` // when the cloud last took one
	CutOff bool      `json:"cutOff"`
	Since  time.Time `json:"since,omitzero"` // of cutOff as it is
}

// ElectionsStatus counts elections since the start.
type ElectionsStatus struct {
	Tried int64 `json:"tried"`
	Won   int64 `json:"won"`
}

// ServerStatus is one kube-apiserver.
type ServerStatus struct {
	Server string `json:"server"`
	InUse  bool   `json:"inUse"`
	judgement
}

// CoordinatorStatus is what the hub knows of the coordinator.
type CoordinatorStatus struct {
	Server string `json:"server"` // the replica in use
	judgement
	Ready     bool            `json:"ready"`
	Lacks     differences     `json:"lacks,omitzero"` // resources of --pool-scope-resources that only one of hub and coordinator has
	Elections ElectionsStatus `json:"elections"`
	Bytes     BytesStatus     `json:"bytes"` // to and from all replicas
}

// OfflineStatus is what is kept for the time without the cloud.
type OfflineStatus struct {
	Away        bool      `json:"away"`        // reads are answered from the store
	Watches     int       `json:"watches"`     // open at the cloud, and recorded
	Collections int       `json:"collections"` // that clients asked for
	Complete    int       `json:"complete"`    // of them, those that can be served
	Bytes       int64     `json:"bytes"`
	FreshAt     time.Time `json:"freshAt,omitzero"` // when the cloud was last reached
	Queued      int       `json:"queued"`           // writes that wait for the cloud
	LastError   string    `json:"lastError,omitempty"`
}

func (s *shelter) status() *OfflineStatus {
	if s == nil {
		return nil
	}
	away, _ := s.link.state()
	st := s.store.Stats()
	return &OfflineStatus{
		Away: away, Watches: st.Watched, Collections: st.Collections, Complete: st.Complete, Bytes: st.FileBytes, FreshAt: st.FreshAt,
		Queued: s.store.Queue().Len(), LastError: st.LastError,
	}
}

// ResourceStatus is one relay and what feeds it.
type ResourceStatus struct {
	Resource   string       `json:"resource"`
	Synced     bool         `json:"synced"`
	Version    uint64       `json:"version"`
	History    uint64       `json:"history"` // of the cloud, that versions are of; it grows when the cloud was restored from a backup
	Oldest     uint64       `json:"oldest"`
	Objects    int          `json:"objects"`
	Bytes      int64        `json:"bytes"`
	RingEvents int          `json:"ringEvents"`
	RingBytes  int64        `json:"ringBytes"`
	Watchers   int          `json:"watchers"`
	AgeSeconds float64      `json:"ageSeconds"`       // since the last sign of its source, -1 for never
	FreshAt    time.Time    `json:"freshAt,omitzero"` // the same as a time by this machine's clock
	Restored   bool         `json:"restored"`         // from a disk, here or where it was read, and there was no sign of the cloud since
	Source     string       `json:"source"`
	Lists      source.Lists `json:"lists"`   // full ones, by cause
	Resyncs    int          `json:"resyncs"` // comparisons by metadata after 410
	Checks     int          `json:"checks"`  // times the cloud was asked whether its history is still this one
	Watches    int          `json:"watches"`
	Switches   int          `json:"switches"`
	LastError  string       `json:"lastError,omitempty"`
	Denied     string       `json:"denied,omitempty"` // what the cloud answers, which does not give the resource to this hub; requests are the cloud's to answer
}

// BytesStatus counts the connections of a class, TLS included.
type BytesStatus struct {
	Down        int64 `json:"down"`
	Up          int64 `json:"up"`
	Connections int64 `json:"connections"`
}

func (m *meter) status() BytesStatus {
	return BytesStatus{m.read.Load(), m.written.Load(), m.connections.Load()}
}

// Status returns what the hub says of itself.
func (h *Hub) Status() Status {
	s := Status{
		Node: h.NodeName, Pool: h.NodePoolName, Role: role.Pending.String(), Reason: "no coordinator is configured",
		Source: role.Cloud.String(), Bytes: map[class]BytesStatus{},
	}
	for i, srv := range h.cloud.servers {
		s.Cloud = append(s.Cloud, ServerStatus{srv.name, int(h.cloud.current.Load()) == i, srv.judgement()})
	}
	s.Heartbeat, s.Offline = h.front.beats.status(), h.shelter.status()
	for c, m := range h.cloud.meters {
		s.Bytes[c] = m.status()
	}
	if p := h.pool; p != nil {
		snap := p.snapshot()
		d := p.forwarding.current()
		s.Delegation = &d
		s.Role, s.Reason, s.Leader, s.Source = snap.Role.String(), snap.Reason, snap.Leader, snap.Source.String()
		if snap.Role == role.Leader {
			s.Term = snap.Term.String()
		}
		s.Coordinator = &CoordinatorStatus{
			p.coordinator.inUse().url.Host, p.checker.judgement(), snap.Ready, p.shared.differences(), ElectionsStatus{p.tried.Load(), p.won.Load()}, p.coordinator.meter.status(),
		}
	}
	now := h.clock.Now()
	for i, r := range h.relays {
		rs, fs := r.Status(), h.feeders[i].Status()
		age, freshAt := -1.0, time.Time{}
		if a, ok := rs.Age(now); ok {
			age, freshAt = a.Truncate(time.Millisecond).Seconds(), now.Add(-a).UTC().Truncate(time.Second)
		}
		s.Resources = append(s.Resources, ResourceStatus{
			Resource: r.Resource().String(), Synced: rs.Synced, Version: rs.Version, History: rs.History.Number, Oldest: rs.Oldest, Objects: rs.Objects, Bytes: rs.Bytes,
			RingEvents: rs.RingEvents, RingBytes: rs.RingBytes, Watchers: rs.Watchers, AgeSeconds: age, FreshAt: freshAt, Restored: rs.Restored,
			Source: fs.Upstream, Lists: fs.Lists, Resyncs: fs.Resyncs, Checks: fs.Checks, Watches: fs.Watches, Switches: fs.Switches, LastError: fs.LastError, Denied: rs.Denied,
		})
	}
	return s
}

func (h *Hub) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.Status())
}
