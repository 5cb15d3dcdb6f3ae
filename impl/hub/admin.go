package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/pods"
	"github.com/weir-edge/weir/impl/hub/shelter"
	"github.com/weir-edge/weir/impl/hub/standin"
	"github.com/weir-edge/weir/impl/hub/uplink"
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

// readyz is good once every relay can answer, or the cloud does in its place: clients of pool-scope resources get more
// than 503 then. While the cloud is there, what a relay holds must not be older than Config.MaxStaleRead either.
func (h *Hub) readyz(w http.ResponseWriter, _ *http.Request) {
	there := h.cloud.Healthy()
	for _, f := range h.sources.All() {
		switch {
		case f.Unavailable():
		case !f.Relay.Status().Synced:
			http.Error(w, f.Resource+" is not synced yet", http.StatusServiceUnavailable)
			return
		case there && h.door.Consistency.Old(f.Relay):
			age, _ := h.door.Consistency.Age(f.Relay)
			http.Error(w, fmt.Sprintf("%s is not known to be fresh: what is held is of %v ago", f.Resource,
				age.Round(time.Second)), http.StatusServiceUnavailable)
			return
		}
	}
	fmt.Fprintln(w, "ok")
}

// Status is what the hub says of itself at contract.StatusPath.
type Status struct {
	Node        string                        `json:"node"`
	Pool        string                        `json:"pool"`
	Role        string                        `json:"role"`
	Reason      string                        `json:"reason,omitempty"` // why it has this role
	Leader      string                        `json:"leader,omitempty"` // identity that holds the election Lease
	Term        string                        `json:"term,omitempty"`   // of the own leadership
	Source      string                        `json:"source"`           // where relays are fed from
	Cloud       []uplink.ServerStatus         `json:"cloud"`
	User        UserStatus                    `json:"user"`
	Coordinator *membership.CoordinatorStatus `json:"coordinator,omitempty"`
	Directory   *directory.Status             `json:"directory,omitempty"` // what the pool is told about itself
	Heartbeat   beat.HeartbeatStatus          `json:"heartbeat"`
	Delegation  *beat.DelegationStatus        `json:"delegation,omitempty"` // of other nodes of the pool
	Offline     *shelter.Status               `json:"offline"`
	// nil: the hub has no authority that they could trust.
	Pods      *pods.Status     `json:"pods,omitempty"`
	Asked     []enrol.Status   `json:"certificates,omitempty"` // those that the hub asks for itself
	Lacks     []standin.Lack   `json:"lacks,omitempty"`        // what the hub goes on without
	Resources []ResourceStatus `json:"resources"`
	NotRelayed
	Bytes map[uplink.Class]uplink.BytesStatus `json:"bytes"` // to and from the cloud, by class
}

// NotRelayed are resources that the pool shares.
type NotRelayed struct {
	Idle    []string `json:"idleResources,omitempty"`    // nobody on this node reads them
	Unknown []string `json:"unknownResources,omitempty"` // and why
}

// UserStatus is who the hub is at the cloud, for what it reads itself.
type UserStatus struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"` // why it is not its own user
}

// ResourceStatus is one relay and what feeds it.
type ResourceStatus struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"`
	Version  uint64 `json:"version"`
	// of the cloud, that versions are of; it grows when the cloud was restored from a backup.
	History    uint64    `json:"history"`
	Oldest     uint64    `json:"oldest"`
	Objects    int       `json:"objects"`
	Bytes      int64     `json:"bytes"`
	RingEvents int       `json:"ringEvents"`
	RingBytes  int64     `json:"ringBytes"`
	Watchers   int       `json:"watchers"`
	AgeSeconds float64   `json:"ageSeconds"`       // since the last sign of its source, -1 for never
	FreshAt    time.Time `json:"freshAt,omitzero"` // the same as a time by this machine's clock
	// from a disk, here or where it was read, and there was no sign of the cloud since.
	Restored bool `json:"restored"`
	SourceStatus
	// what the cloud answers, which does not give the resource to this hub; requests are the cloud's to answer.
	Denied string `json:"denied,omitempty"`
}

// SourceStatus is what feeds one relay.
type SourceStatus struct {
	Source    string       `json:"source"`
	Lists     source.Lists `json:"lists"`   // full ones, by cause
	Resyncs   int          `json:"resyncs"` // comparisons by metadata after 410
	Checks    int          `json:"checks"`  // times the cloud was asked whether its history is still this one
	Watches   int          `json:"watches"`
	Switches  int          `json:"switches"`
	LastError string       `json:"lastError,omitempty"`
}

// Status returns what the hub says of itself.
func (h *Hub) Status() Status {
	snap := h.pool.Snapshot()
	s := Status{
		Node: h.NodeName, Pool: h.NodePoolName, Role: snap.Role.String(), Reason: snap.Reason, Leader: snap.Leader,
		Source: snap.Source.String(), Bytes: map[uplink.Class]uplink.BytesStatus{},
	}
	if snap.Role == role.Leader {
		s.Term = snap.Term.String()
	}
	s.Cloud = h.cloud.Status()
	s.User.Name, s.User.Reason = h.atCloud.Is()
	s.Heartbeat, s.Offline = h.door.Beats.Status(), h.shelter.Status()
	s.Pods, s.Lacks = h.own.pods.Status(), h.lacks.All()
	for _, k := range h.keepers {
		s.Asked = append(s.Asked, k.Status())
	}
	for _, c := range uplink.Classes {
		s.Bytes[c] = h.cloud.Bytes(c)
	}
	if p := h.pool.Status(); p != nil {
		s.Coordinator, s.Delegation, s.Directory = &p.Coordinator, &p.Delegation, new(h.directory.Status())
	}
	s.Idle, s.Unknown = h.scope.Idle(), h.scope.Unknown()
	now := h.clock.Now()
	for _, f := range h.sources.All() {
		rs, fs := f.Relay.Status(), f.Status()
		age, freshAt := -1.0, time.Time{}
		if a, ok := rs.Age(now); ok {
			age, freshAt = a.Truncate(time.Millisecond).Seconds(), now.Add(-a).UTC().Truncate(time.Second)
		}
		s.Resources = append(s.Resources, ResourceStatus{
			Resource: f.Resource, Synced: rs.Synced, Version: rs.Version, History: rs.History.Number, Oldest: rs.Oldest,
			Objects: rs.Objects, Bytes: rs.Bytes,
			RingEvents: rs.RingEvents, RingBytes: rs.RingBytes, Watchers: rs.Watchers, AgeSeconds: age, FreshAt: freshAt,
			Restored:     rs.Restored,
			SourceStatus: SourceStatus{fs.Upstream, fs.Lists, fs.Resyncs, fs.Checks, fs.Watches, fs.Switches, fs.LastError},
			Denied:       rs.Denied,
		})
	}
	return s
}

func (h *Hub) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.Status())
}
