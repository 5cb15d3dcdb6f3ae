// Package digest is what a hub tells the cloud of itself in one line: what runs, in which role, how old its relays are,
// what went over the uplink and what its clients got.
//
// A hub puts it as contract.DigestAnnotation on a heartbeat of its kubelet, which crosses the uplink anyway, so it
// costs no request. The next heartbeat does not carry it: the annotation stands on the Lease of the node for seconds,
// and weir-manager, which watches these Leases, keeps what it said. A Lease is in no relay, and nobody in the pool
// watches it, so nothing of it comes back. A Rhythm decides when it is worth its bytes.
//
// Whoever is root on a node writes what he likes there. Parse bounds it. One that lies changes what is shown of his
// pool, and nothing else follows from it.
//
// The package is pure: no I/O, no goroutine, no clock.
package digest
