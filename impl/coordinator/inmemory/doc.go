// Package inmemory is a coordinator without etcd, disk and sockets. Tests and simulations use it; no program links it.
//
// Package lease keeps the Leases. Who may write them, who leads, who is read and what the status says is decided by the
// code that weir-coordinator runs (package lead).
package inmemory
