// Package coordinator is a hub's client of the coordinator of its pool. It reads health and status, and reads and
// writes the Leases of the pool and of its nodes.
//
// A coordinator is one process, or three replicas. A Client uses one Replica at a time: Healthz is a probe that goes to
// another one if that stands better. What runs at a replica that is left ends at once (With). Leases tells of the
// pool's Leases as they change.
//
// New starts nothing. Leases.Run blocks until its context ends; a probe that is over leaves no goroutine behind.
package coordinator
