// Package digest is one line in which a hub reports about itself to the cloud: its version and role, the age of its
// relays, its bytes on the uplink and the bytes that its clients got.
//
// A hub puts it as contract.DigestAnnotation on a heartbeat of its kubelet, which crosses the uplink anyway, so it
// costs no request. The next heartbeat does not carry it: the annotation stands on the Lease of the node for seconds,
// and weir-manager, which watches these Leases, keeps what it said. A Lease is in no relay, and nobody in the pool
// watches it, so nothing of it comes back. A Rhythm decides when it is worth its bytes.
//
// Root of a node writes what it likes there. Parse bounds it. One that lies changes what is shown of his pool, and
// nothing else follows from it.
//
// The package is pure: no I/O, no goroutine, no clock.
package digest
