// Package inmemory is a coordinator without etcd, disk and sockets, for tests of what talks to one and for simulations.
// No program links it.
//
// Leases are kept by the rules of a Kubernetes API. Who may write them, who leads, who is read and what the status says
// is decided by the code that weir-coordinator runs (packages election, fence, pull and status).
package inmemory
