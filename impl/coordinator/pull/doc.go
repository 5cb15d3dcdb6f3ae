// Package pull keeps the relays of a coordinator fed: from the hub of the node that the fence says leads; at a replica
// that the leader does not use, from the one that it does; and while nobody leads, from the hub that holds most, see
// hearsay. It never goes round in a circle, where old news would vouch for itself, because of several replicas all read
// the one that claimed last, and that one reads none, and hearsay ends when it is told.
//
// A leader that dies leaves its Lease behind, and others would have to wait for that to expire, many seconds, because
// each renewal is a write to flash. The connection to it is no write: it breaks at once when the leader's process dies,
// and pings go unanswered when the machine does. Then the Lease is taken from the leader. Should it live all the same,
// nothing is lost: it may stand again, though not at once.
//
// It knows no API server and no etcd: Leases and Replicas are interfaces, so that a coordinator in memory pulls as the
// real one does. Run starts all goroutines and ends them.
package pull
