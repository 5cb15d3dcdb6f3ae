// Package pull fills the relays of a coordinator. A coordinator reads from the hub that leads the pool. A replica that
// the leader does not use reads from the replica that the leader does use. While no hub leads, a coordinator reads from
// the hub with the latest state (type fallback). Replicas never read in a circle, where old data would look fresh: all
// of them read the one that last claimed to read the leader, and that one reads no other replica.
//
// A leader that dies leaves its Lease behind, and others would have to wait for that to expire, many seconds, because
// each renewal is a write to flash. The connection to it is no write: it breaks at once when the leader's process dies,
// and pings go unanswered when the machine does. Then the Lease is taken from the leader. Should it live all the same,
// nothing is lost: it may stand again, though not at once.
//
// Status is what a coordinator says of itself, as JSON, and whether it is ready.
//
// It knows no API server and no etcd: Leases and Replicas are interfaces, so that a coordinator in memory pulls as the
// real one does. Run starts all goroutines and ends them.
package pull
