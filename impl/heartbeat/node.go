package heartbeat

import "time"

// Plan is what a hub does with a heartbeat of its kubelet.
type Plan uint8

// Plans.
const (
	// Pass sends it to the cloud. Node.Passed tells how that ended.
	Pass Plan = iota
	// Return withdraws in the coordinator what was said there about the cloud, then passes. The heartbeat passes also if
	// that fails: a coordinator that cannot be reached must not keep a node away from the cloud.
	Return
	// Keep answers the kubelet at once: nothing reaches the cloud. Node.Statement follows.
	Keep
)

func (p Plan) String() string { return [...]string{"pass", "return", "keep"}[p] }

// Quiet is the time after which a heartbeat that the cloud takes is written into the coordinator again, if nothing
// changed. Nobody waits for these: leaders watch only the Leases of nodes that are cut off, and a coordinator that
// looks for hubs is told their addresses by the hubs as soon as nobody leads. What is left are people who look, and
// each write goes to the disks of all replicas.
const Quiet = 5 * time.Minute

// Statement is what a hub writes into its node's Lease in the coordinator.
type Statement struct {
	Needed    bool      // else it is not worth a write
	Renew     time.Time // differs from that of the statement before: this change is the heartbeat
	Delegated bool
	Until     time.Duration // not written after this: it would be taken for a sign of life of then
}

// Node decides for the heartbeats of the node that a hub runs on. Nothing happens unless its kubelet gives a sign of
// life. It is not safe for concurrent use.
type Node struct {
	cutOff bool
	since  time.Duration // of cutOff as it is
	beat   time.Duration
	beats  int
	stated time.Time // renewTime of the last statement

	written   bool          // a statement was, and delegated and writtenAt are of the last one
	delegated bool          // it said that the node is cut off
	writtenAt time.Duration // when it was made
}

// Beat takes a heartbeat of the kubelet, and whether a server in the cloud is worth a try.
func (n *Node) Beat(now time.Duration, cloud bool) Plan {
	n.beat = now
	n.beats++
	switch {
	case !cloud:
		return Keep
	case n.cutOff:
		return Return
	}
	return Pass
}

// Passed takes the end of an attempt to reach the cloud, or of a plan to keep. taken: the cloud answered, even if it
// refused.
func (n *Node) Passed(now time.Duration, taken bool) {
	if n.cutOff == taken || n.since == 0 {
		n.since = now
	}
	n.cutOff = !taken
}

// Statement is what to write to the coordinator about the heartbeat that came last, once it is known what became of it.
func (n *Node) Statement(renew time.Time) Statement {
	renew = renew.Truncate(tick)
	if renew.Equal(n.stated) {
		renew = renew.Add(tick)
	}
	n.stated = renew
	needed := n.cutOff || !n.written || n.delegated || n.beat-n.writtenAt >= Quiet
	return Statement{Needed: needed, Renew: renew, Delegated: n.cutOff, Until: n.beat + Interval}
}

// Written notes that the coordinator has a statement.
func (n *Node) Written(s Statement) {
	n.written, n.delegated, n.writtenAt = true, s.Delegated, s.Until-Interval
}

// CutOff reports whether the last heartbeat did not reach the cloud, and since when that is as it is.
func (n *Node) CutOff() (cutOff bool, since time.Duration) { return n.cutOff, n.since }

// Last is when the last heartbeat came, and how many did.
func (n *Node) Last() (at time.Duration, beats int) { return n.beat, n.beats }
