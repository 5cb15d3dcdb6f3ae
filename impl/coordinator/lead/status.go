package lead

import (
	"encoding/json"
	"maps"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/store"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
)

// Status is what a coordinator says of itself at contract.StatusPath.
type Status struct {
	Pool        string `json:"pool"`
	Incarnation string `json:"incarnation"`       // of its etcd
	Leader      string `json:"leader"`            // node that holds the election Lease; "": nobody
	Term        string `json:"term"`              // of the leader; "": nobody leads
	Ready       bool   `json:"ready"`             // all resources are that the cloud gives to the leader
	Replica     string `json:"replica,omitempty"` // name of this one of several
	// the replica that reads the leader; "": none yet, or this is the only one.
	Fed string `json:"fed,omitempty"`
	// what hubs that follow and reach the cloud are asked; see Jury.
	Doubt     *contract.Doubt  `json:"doubt,omitempty"`
	Hubs      int              `json:"hubs,omitempty"` // that asked for this within hubsPatience
	Etcd      *store.Space     `json:"etcd,omitempty"` // how full it is
	Resources []ResourceStatus `json:"resources"`
	// that the pool shares, and that no hub reads: who does is given them.
	Idle []string `json:"idleResources,omitempty"`
	// that the pool is to share, and why they are not relayed.
	Unknown []string `json:"unknownResources,omitempty"`
}

// ResourceStatus is the state of one relay.
type ResourceStatus struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"`
	Ready    bool   `json:"ready"`   // synced, and fed within --fresh-within
	Version  uint64 `json:"version"` // reached
	// of the cloud, that versions are of; it grows when the cloud was restored from a backup, or the leader lied.
	History  uint64 `json:"history"`
	Oldest   uint64 `json:"oldest"` // from which a watch can resume
	Objects  int    `json:"objects"`
	Bytes    int64  `json:"bytes"`
	Watchers int    `json:"watchers"`
	// ProgressAgeSeconds is the time since the last sign of the feed; null: there was none.
	ProgressAgeSeconds *float64 `json:"progressAgeSeconds"`
	// FreshAt is when the state was last known to be all there is, by this machine's clock. While Ready is false, it is
	// stale since then.
	FreshAt time.Time `json:"freshAt,omitzero"`
	// from a disk, here or of a hub that was asked what it held, and no leader has been read since.
	Restored bool   `json:"restored"`
	Feeder   string `json:"feeder"`         // node whose hub it is read from now; "": none
	From     string `json:"from,omitempty"` // the replica that it is pulled from
	// Mismatches are differences that were to what the relay does not hold, and came whole.
	Mismatches int `json:"mismatches,omitempty"`
	// Denied is what the cloud answers to the leader that asks for the resource; it is the answer here, too. "": the
	// leader is given it.
	Denied string `json:"denied,omitempty"`
}

// Reporter knows what a Status tells, and serves it.
type Reporter struct {
	Pool     string
	Replica  string // "": this is the only one
	Replicas Replicas
	Fence    *member.Fence
	Relays   func() []*relay.Relay
	Unknown  func() []string // resources that are to be relayed, and are not
	Idle     func() []string // that no hub reads
	Ready    Readiness
	Puller   *Puller
	Doubt    func() *contract.Doubt // that is open; nil: there is none
	Space    func() store.Space     // nil: there is no etcd
	// NodeOf is the node whose hub asks, "" if somebody else does; nil: hubs are not counted.
	NodeOf func(*http.Request) string
	Clock  clock.PassiveClock

	mu    sync.Mutex
	asked map[string]time.Time // when a node's hub did last
}

// hubsPatience is after how long a hub does not count any more that does not ask. It asks each 30 s.
const hubsPatience = 90 * time.Second

// heard counts the hub that asks, and returns how many have asked lately. A certificate names the node, so there are no
// more than nodes of the pool.
func (x *Reporter) heard(req *http.Request) int {
	if x.NodeOf == nil {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asked == nil {
		x.asked = map[string]time.Time{}
	}
	now := x.Clock.Now()
	if node := x.NodeOf(req); node != "" {
		x.asked[node] = now
	}
	maps.DeleteFunc(x.asked, func(_ string, at time.Time) bool { return now.Sub(at) > hubsPatience })
	return len(x.asked)
}

// Status looks at everything.
func (x *Reporter) Status() Status {
	s := Status{
		Pool: x.Pool, Incarnation: x.Fence.Incarnation, Ready: true, Resources: []ResourceStatus{}, Unknown: x.Unknown(),
		Idle: x.Idle(),
	}
	if l := x.Fence.Leader(); l.Node != "" {
		s.Leader, s.Term = l.Node, l.Term.String()
	}
	if s.Replica = x.Replica; x.Replica != "" {
		s.Fed, _ = x.Replicas.Reads()
	}
	s.Doubt = x.Doubt()
	if x.Space != nil {
		s.Etcd = new(x.Space())
	}
	for _, r := range x.Relays() {
		st := r.Status()
		rs := ResourceStatus{
			Resource: r.Resource().String(), Synced: st.Synced, Ready: x.Ready.Unready(r) == nil, Version: st.Version,
			History: max(st.History.Number, x.Ready.Floor(r.Resource().String())), Oldest: st.Oldest,
			Objects: st.Objects, Bytes: st.Bytes, Watchers: st.Watchers, Restored: st.Restored, Denied: st.Denied,
		}
		rs.Feeder, rs.From = x.Puller.Feeder(r)
		rs.Mismatches = x.Puller.Mismatches(r)
		if age, ok := st.Age(x.Clock.Now()); ok {
			seconds := age.Seconds()
			rs.ProgressAgeSeconds, rs.FreshAt = &seconds, x.Clock.Now().Add(-age).UTC().Truncate(time.Second)
		}
		s.Ready = s.Ready && x.Ready.Waits(r) == nil
		s.Resources = append(s.Resources, rs)
	}
	return s
}

// ServeHTTP implements http.Handler.
func (x *Reporter) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	s := x.Status()
	s.Hubs = x.heard(req)
	_ = e.Encode(s)
}
