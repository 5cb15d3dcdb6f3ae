package heartbeat

import "time"

// Times of heartbeats. What stock Kubernetes gives is in the package comment.
const (
	Interval = 10 * time.Second         // at which a kubelet renews, as it comes: a quarter of the Lease's 40 s
	Slowest  = 10400 * time.Millisecond // the same with the kubelet's jitter of 4 %
	Attempt  = 5 * time.Second          // for a heartbeat to reach the cloud, at any of its servers; a kubelet waits 10 s
	Stagger  = 1500 * time.Millisecond  // after which the next server is asked as well
	Withdraw = time.Second              // for the coordinator to withdraw that the node is cut off
	Life     = 12 * time.Second         // a heartbeat is forwarded within this, or not: a bit more than until the next
	Pause    = time.Second              // between tries of a forward, but for the first two
)

// Of nodes that are left to the roll call of their pool.
const (
	// Lapse is for how long a hub leaves its node to the pool after a heartbeat of which a receipt came. Of the last three
	// the first has one, unless something is wrong: it waits ten seconds for a report, and the receipt as long. Then the
	// hub passes the one that came last, and does not wait for the next.
	Lapse = 3*Slowest + 800*time.Millisecond
	// Prove is after how long a heartbeat goes by itself all the same. It shows that the cloud takes one; that the way to
	// the cloud is there is shown all the time by the pings of another connection, over which it goes: see Cover.Calm.
	Prove = 30 * time.Minute
)

// Grace is how long stock Kubernetes waits for a Lease to grow before a node's Ready is Unknown
// (--node-monitor-grace-period).
const (
	Grace       = 50 * time.Second
	GraceBefore = 40 * time.Second // before 1.32
)

// Budget adds up the longest time in which a node's Lease in the cloud does not grow, though its kubelet lives and a
// hub of its pool reaches cloud and coordinator.
type Budget struct {
	// from the last thing that the old leader forwarded until the new one begins; zero: no change.
	LeaderChange time.Duration
	// the new leader has seen no heartbeat itself: its hub, or the coordinator, has just started.
	Cold    bool
	Pool    time.Duration // from a hub to a leader through the coordinator
	Request time.Duration // to the cloud, with what it takes to find a server that lives
}

// Worst is that time: the cloud took a heartbeat and was gone.
func (b Budget) Worst() time.Duration {
	const requests = 3 // read, make sure of, write; the second goes to the coordinator and is counted as one to the cloud
	worst := Slowest + Attempt + b.Pool + b.LeaderChange + requests*b.Request
	if b.Cold {
		worst += Slowest + Attempt
	}
	return worst
}

// Covered is that time for a node that is left to its pool, and whose hub reaches the cloud itself. Nothing adds to it:
// weir-manager may die or start again, or be cut off from the leader, and another hub may lead at the same moment. The
// hub counts for itself. Its coordinator may hang.
func (b Budget) Covered() time.Duration { return Lapse + Withdraw + b.Request }

// CoveredAndCut is that time if weir-manager dies, and then the node's own way ends and nobody notices. The heartbeat
// that is passed at Lapse is tried in vain. It may be too old to be told to the leader: then the next one is, untried.
func (b Budget) CoveredAndCut() time.Duration {
	const tells = Withdraw + Attempt + Slowest - Interval
	return Lapse + tells + b.Pool + b.LeaderChange + 3*b.Request
}
