package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/beat"
	"github.com/weir-edge/weir/impl/hub/membership"
	"github.com/weir-edge/weir/impl/hub/nodelocal"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/relayed"
	"github.com/weir-edge/weir/impl/hub/shelter"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/process"
	"github.com/weir-edge/weir/impl/reverse"
	"github.com/weir-edge/weir/impl/role"
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
	Node   string `json:"node"`
	Pool   string `json:"pool"`
	Role   string `json:"role"`
	Reason string `json:"reason,omitempty"` // why it has this role
	Leader string `json:"leader,omitempty"` // identity that holds the election Lease
	Term   string `json:"term,omitempty"`   // of the own leadership
	Source string `json:"source"`           // where relays are fed from
	AtCloud
	User        uplink.UserStatus             `json:"user"`
	Coordinator *membership.CoordinatorStatus `json:"coordinator,omitempty"`
	Directory   *directory.Status             `json:"directory,omitempty"` // what the pool is told about itself
	Heartbeat   beat.HeartbeatStatus          `json:"heartbeat"`
	Delegation  *beat.DelegationStatus        `json:"delegation,omitempty"` // of other nodes of the pool
	Offline     *shelter.Status               `json:"offline"`
	ForNode
	Asked     []credential.KeeperStatus `json:"certificates,omitempty"` // those that the hub asks for itself
	Lacks     []process.Lack            `json:"lacks,omitempty"`        // what the hub goes on without
	Resources []relayed.ResourceStatus  `json:"resources"`
	relayed.NotRelayed
}

// AtCloud are the hub's connections to the cloud.
type AtCloud struct {
	Cloud []uplink.ServerStatus               `json:"cloud"`
	Bytes map[uplink.Class]uplink.BytesStatus `json:"bytes"` // to and from the cloud, by class
	// WayIn are the connections to replicas of weir-gate by which the cloud reaches into the pool: as many as there are to
	// be, while this hub leads.
	WayIn []reverse.LeaderState `json:"wayIn,omitempty"`
}

// ForNode is what the hub does for its node beside the API.
type ForNode struct {
	// nil: the hub has no authority that they could trust.
	Pods   *nodelocal.PodsStatus  `json:"pods,omitempty"`
	Images *pooldoor.MirrorStatus `json:"images,omitempty"` // nil: there is no mirror of registries
}

// Status returns what the hub says of itself.
func (h *Hub) Status() Status {
	snap := h.self.Snapshot()
	s := Status{
		Node: h.NodeName, Pool: h.NodePoolName, Role: snap.Role.String(), Reason: snap.Reason, Leader: snap.Leader,
		Source: snap.Source.String(), AtCloud: AtCloud{Bytes: map[uplink.Class]uplink.BytesStatus{}},
	}
	if snap.Role == role.Leader {
		s.Term = snap.Term.String()
	}
	s.Cloud = h.cloud.Status()
	s.User.Name, s.User.Reason = h.atCloud.Is()
	s.Heartbeat, s.Offline = h.door.Beats.Status(), h.shelter.Status()
	s.Pods, s.Lacks, s.Images = h.pods.Status(), h.lacks.All(), h.mirror.Status()
	for _, k := range h.keepers {
		s.Asked = append(s.Asked, k.Status())
	}
	for _, c := range uplink.Counted {
		s.Bytes[c] = h.cloud.Bytes(c)
	}
	if p := h.pool.Status(); p != nil {
		s.Coordinator, s.Delegation, s.Directory = &p.Coordinator, &p.Delegation, new(h.directory.Status())
	}
	s.WayIn = h.wayIn.Status()
	s.Idle, s.Unknown = h.scope.Idle(), h.scope.Unknown()
	s.Resources = h.sources.Status(h.clock.Now())
	return s
}

func (h *Hub) serveStatus(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.Status())
}
