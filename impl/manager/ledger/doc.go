// Package ledger keeps, by node, the reports that hubs send about themselves (package digest).
//
// It comes with heartbeats, by the watch of Leases that weir-manager has anyway, and stands there for seconds. So every
// replica notes it when it comes, and the one that leads writes it into the status of the Pool, from which a replica
// that starts reads it again. A time is that of the replica that noted it.
//
// A node tells what it likes: it is bounded, shown, and decides nothing. Only nodes that there are, and that are in a
// pool, have metrics.
//
// # Goroutines
//
// None. Ledger.Follow runs in its caller's.
package ledger
