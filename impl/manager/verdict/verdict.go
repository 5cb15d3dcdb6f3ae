package verdict

import (
	"errors"
	"fmt"
	"time"
)

// Config is the time base.
type Config struct {
	Grace  time.Duration // for how long the cloud waits for a heartbeat; that of kube-controller-manager
	Silent time.Duration // a pool is silent when nobody was heard for so long; less than Grace. 0: half of Grace
}

// Validate tells what is wrong with a Config.
func (c Config) Validate() error {
	switch {
	case c.Grace <= 0:
		return errors.New("verdict: grace has to be positive")
	case c.Silent < 0 || c.Silent >= c.Grace:
		return fmt.Errorf("verdict: silent %s: want less than grace, %s", c.Silent, c.Grace)
	}
	return nil
}

// Policy says what to do with a pool that is silent. The zero value keeps its pods.
type Policy struct {
	Evict bool
	After time.Duration // of silence
}

// Facts are what a Node object says.
type Facts struct {
	Pool        string        // "": none
	Unreachable bool          // the cloud holds it for lost: Ready is Unknown, or the taint that follows has not gone yet
	Bound       bool          // its pods stay in any case
	BoundFor    time.Duration // but only while it is missing for less than this; 0: for ever
}

// State of a node.
type State int

// The states.
const (
	Unknown State = iota
	Normal
	Delegated
	Missing
)

// String is the name of a state as metrics and logs show it.
func (s State) String() string {
	switch s {
	case Normal:
		return "normal"
	case Delegated:
		return "delegated"
	case Missing:
		return "missing"
	}
	return "unknown"
}

// Alive reports whether a heartbeat was seen within Grace.
func (s State) Alive() bool { return s == Normal || s == Delegated }

// Verdict is what is known of a node.
type Verdict struct {
	State State
	Pool  string
	Dead  bool      // its peers are heard and it is not
	Kept  bool      // stock controllers leave its pods alone
	Bound bool      // its pods are not evicted
	Owed  bool      // it is to be released
	Heard time.Time // last, by this process; zero: not yet
}

// PoolVerdict is what is known of a pool.
type PoolVerdict struct {
	Silent  bool
	Since   time.Time // when its last node was heard, or when the pool was first seen
	GivenUp bool      // its policy says that its pods are evicted
	Policy  Policy
}

// Tally counts the nodes of a pool.
type Tally struct {
	Heard     int // within Grace, by themselves or through a peer
	Delegated int // of these, through a peer
	Unknown   int // not heard since this process started, and too early to call them missing
}

// PoolRecord is what is remembered of a silent pool.
type PoolRecord struct {
	Since   time.Time
	GivenUp bool
}

// Record is what a successor has to know. Names are of nodes, sorted; Pools are the silent ones.
type Record struct {
	Kept, Bound, Dead, Owed []string
	Pools                   map[string]PoolRecord
}

// Decision is the result of a step. It is not changed afterwards.
type Decision struct {
	Nodes  map[string]Verdict
	Pools  map[string]PoolVerdict
	Tally  map[string]Tally // by pool
	Record Record
	Deaf   bool // nobody at all is heard
}
