package role

import (
	"strconv"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// Role is what a hub is to its pool.
type Role uint8

// Roles. The zero value is where every hub starts.
const (
	Pending Role = iota
	Follower
	Leader
)

func (r Role) String() string {
	return [...]string{"Pending", "Follower", "Leader"}[r]
}

// Source is where the relays of a hub are fed from.
type Source uint8

// Sources. Nowhere is a short wait at the start.
const (
	Nowhere Source = iota
	Cloud
	Coordinator
)

func (s Source) String() string {
	return [...]string{"nowhere", "cloud", "coordinator"}[s]
}

// Snapshot is the state of a machine after a step. It is a value: whoever holds one may keep it.
type Snapshot struct {
	Role   Role
	Reason string        // why the role is what it is, in a few words
	Since  time.Duration // when the role began
	Leader string        // identity that held the election Lease when it was last seen, "" if none did
	Term   contract.Term // of the own leadership, zero otherwise
	Ready  bool          // the pool's cache is fresh
	Source Source
	Done   bool // after Input.Stop: nothing is left to do
}

// Record is a Lease as it was read or written.
type Record struct {
	Exists      bool
	Holder      string
	Duration    time.Duration
	AcquireTime time.Time // of another machine's clock: compared for change only
	RenewTime   time.Time // likewise
	Transitions int32
	UID         string // changes when the store is lost, even if versions come again
	Version     string // resourceVersion
}

// changed reports whether the holder wrote the Lease between two reads.
func (r Record) changed(from Record) bool {
	return r.Exists != from.Exists || r.Holder != from.Holder || !r.RenewTime.Equal(from.RenewTime) ||
		!r.AcquireTime.Equal(from.AcquireTime) || r.UID != from.UID || r.Transitions != from.Transitions
}

// older reports whether r is surely from before another record: what was asked and what was watched come in any order.
func (r Record) older(than Record) bool {
	if !r.Exists || !than.Exists || r.UID != than.UID {
		return false
	}
	a, errA := strconv.ParseUint(r.Version, 10, 64)
	b, errB := strconv.ParseUint(than.Version, 10, 64)
	return errA == nil && errB == nil && a < b
}

// Kind is what an action does.
type Kind uint8

// Kinds of actions. All but Feed and StopFeed are requests to the coordinator, and each must be answered by exactly one
// Result. At most one of the election's (ReadElection to Release) and one of the others is under way at a time.
const (
	ReadElection Kind = iota
	Acquire           // write Action.Lease; its Result carries the incarnation of the store that took the write
	Renew             // write Action.Lease
	Release           // write Action.Lease
	ReadSync
	ReadStatus // ask the coordinator whether it is ready
	RenewSync  // write Action.Lease
	Feed       // begin to lead, under Action.Term
	StopFeed
)

func (k Kind) String() string {
	return [...]string{
		"read-election", "acquire", "renew", "release", "read-sync", "read-status", "renew-sync", "feed", "stop-feed",
	}[k]
}

// election reports whether an action is about the election Lease.
func (k Kind) election() bool { return k <= Release }

// Action is something for the hub to do.
type Action struct {
	Kind Kind
	// Lease is what Acquire, Renew, Release and RenewSync write, if the stored UID and version are still those of Lease
	// (if there is no Lease, unless Lease.Exists). The hub fills in RenewTime, and AcquireTime for Acquire, from its wall
	// clock.
	Lease Record
	Term  contract.Term // of Feed
}

// Outcome is how a request ended.
type Outcome uint8

// Outcomes.
const (
	OK       Outcome = iota
	Conflict         // refused: the Lease is not the one given, not at that version, or gone
	Failed           // anything else; a write may have been applied
)

func (o Outcome) String() string { return [...]string{"ok", "conflict", "failed"}[o] }

// Result ends a request.
type Result struct {
	Kind        Kind
	Outcome     Outcome
	Sent        time.Duration // when the request was sent
	Lease       Record        // OK: as the coordinator answered
	Incarnation string        // Acquire
	Ready       bool          // ReadStatus
}

// outrun reports whether r says that there is no Lease, and a watch showed one since it was asked. Without a version,
// nothing else tells which is later.
func (r Result) outrun(by Record, shown time.Duration) bool {
	return r.Outcome == OK && !r.Lease.Exists && by.Exists && r.Sent < shown
}

// Input is what a hub observed since the last step.
type Input struct {
	Now         time.Duration // never goes back
	Coordinator bool          // healthy
	Cloud       bool          // healthy
	// this hub's own streams from the cloud are fresh, and what they brought arrived at the coordinator.
	Fresh bool
	// there are own streams from the cloud, and nothing at all comes over them, not even answers to pings.
	Silent bool
	// this hub leads, and fails to feed something that another hub may be able to feed; not: it takes its time. Or it does
	// not lead, and the cloud gives it nothing of what the pool shares.
	Unable bool
	// nothing came from the cloud since the election Lease was seen to be free: it may be away, too.
	Unproven   bool
	Have       bool        // the relays hold a state, fresh or not
	Restored   bool        // the state is what a disk held, and nothing came from a source since
	Aged       bool        // the state is older than Config.Grace
	Reached    uint64      // changes when what is not fresh in the relays moves: then the source is slow, and not dead
	Doubted    bool        // the cloud contradicts what the leader feeds the pool
	Designated Designation // who feeds the pool, if nobody is elected
	Shown      string      // node of the leader hub in use, if what it shows is fresh; "": it is not, or there is none
	Stop       bool        // the hub ends: give back the Lease
	Election   *Record     // the election Lease as a watch showed it, nil: nothing new
	Sync       *Record     // leader-informer-sync, likewise
	Result     *Result
}

// Output is what follows from a step.
type Output struct {
	Snapshot Snapshot
	Actions  []Action
	Wake     time.Duration // the next step is due then, at the latest; sooner when there is something to observe
}
