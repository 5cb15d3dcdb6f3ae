package member

import (
	"time"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
)

// Observation is what a hub saw until now. Fields without a note are the present state; "news" is what came since the
// last step, and nil or empty if nothing did.
type Observation struct {
	Now        time.Time
	Pool       bool             // the coordinator in use, or the leader hub in use, is healthy
	Cloud      Cloud            // the kube-apiserver
	Designated role.Designation // how the pool finds its leader
	Server     string           // the coordinator or leader hub in use; it changes when another one is used; "": none
	Node       string           // the node of the leader hub in use; "": a coordinator is
	Shown      string           // Node, if that hub says that what it shows is fresh; else ""
	Relays     []Relay          // of all resources of the pool, in an order that does not change
	Idle       []string         // resources of the pool that nobody on this node reads: they have no relay
	Reader     Reader           // who reads what this hub shows
	Doubted    bool             // the cloud contradicted what the present leader feeds
	Stop       bool             // the hub ends: the Lease is to be given back
	Told       bool             // and it ends because it was told to, not because something failed

	Denied   []string     // news: resources that a source said that it does not give
	Result   *role.Result // news: the end of a Request
	Election *role.Record // news: the election Lease, as a watch showed it
	Sync     *role.Record // news: leader-informer-sync, likewise
	Answer   *Answer      // news: the end of an AskStatus
}

// Cloud is what is known of the kube-apiserver.
type Cloud struct {
	Healthy bool
	Heard   time.Time // the last sign of life
	Read    int64     // bytes that came over the streams of the relays; only a change counts
}

// Relay is one relay of the hub, and its feed.
type Relay struct {
	Name string // of the resource, as relay.Resource prints it
	relay.Status
	Code    int32       // the HTTP code of the answer that denied the resource; 0: it is given
	From    role.Source // where it is fed from now
	Since   time.Time   // since when From gives it, or an attempt fails
	Failing bool        // the last attempt failed, and nothing came since
	Refused bool        // the coordinator said that it does not have the resource, and gave none since
}

// Reader is who reads what a leader shows.
type Reader struct {
	Reads bool      // the coordinator does
	Since time.Time // since when it does, or does not
}

// Answer ends an AskStatus.
type Answer struct {
	Status *PoolStatus // nil: there was no answer
}

// PoolStatus is what a coordinator, or a leader hub, says of itself.
type PoolStatus struct {
	Incarnation string `json:"incarnation"`
	Ready       bool   `json:"ready"`
	// Doubt is a question to hubs that follow and reach the cloud; nil: none.
	Doubt     *contract.Doubt `json:"doubt"`
	Hubs      int             `json:"hubs"` // that ask it, the caller among them; 0: it does not tell
	Resources []PoolResource  `json:"resources"`
	Idle      []string        `json:"idleResources"` // that it has once they are read
}

// PoolResource is what it says of one resource.
type PoolResource struct {
	Resource string `json:"resource"`
	Synced   bool   `json:"synced"`
	Ready    bool   `json:"ready"`
	Version  uint64 `json:"version"`
	History  uint64 `json:"history"`
	Feeder   string `json:"feeder"`
}

// Of is what is said of a resource, nil if nothing is.
func (s *PoolStatus) Of(resource string) *PoolResource {
	for i := range s.Resources {
		if s.Resources[i].Resource == resource {
			return &s.Resources[i]
		}
	}
	return nil
}

// has reports whether the coordinator reached the version of a relay.
func (s *PoolStatus) has(resource string, want relay.Status) bool {
	r := s.Of(resource)
	return r != nil && want.Synced && r.Synced && r.History == want.History.Number && r.Version >= want.Version
}
