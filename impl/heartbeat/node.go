package heartbeat

import "time"

// Plan is what a hub does with a heartbeat of its kubelet.
type Plan uint8

// Plans.
const (
	// Pass sends it to the cloud. Node.Passed tells how that ended.
	Pass Plan = iota
	// Return withdraws in the coordinator what was said there about the cloud, then passes. The heartbeat passes also if that fails: a
	// coordinator that cannot be reached must not keep a node away from the cloud.
	Return
	// Keep answers the kubelet at once: nothing reaches the cloud. Node.Statement follows.
	Keep
)

func (p Plan) String() string { return [...]string{"pass", "return", "keep"}[p] }

// Statement is what a hub writes into its node's Lease in the coordinator.
type Statement struct {
	Renew     time.Time // differs from that of the statement before: this change is the heartbeat
	Delegated bool
	Until     time.Duration // not written after this: it would be taken for a sign of life of then
}

// Node decides for the heartbeats of the node that a hub runs on. Nothing happens unless its kubelet gives a sign of life. It is not safe for concurrent use.
type Node struct {
	cutOff bool
	since  time.Duration // of cutOff as it is
	beat   time.Duration
	beats  int
	stated time.Time // renewTime of the last statement
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

// Passed takes the end of an attempt to reach the cloud, or of a plan to keep. taken: the cloud answered, even if it refused.
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
	return Statement{Renew: renew, Delegated: n.cutOff, Until: n.beat + Interval}
}

// CutOff tells whether the last heartbeat did not reach the cloud, and since when that is as it is.
func (n *Node) CutOff() (cutOff bool, since time.Duration) { return n.cutOff, n.since }

// Last is when the last heartbeat came, and how many did.
func (n *Node) Last() (at time.Duration, beats int) { return n.beat, n.beats }
