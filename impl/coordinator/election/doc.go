// Package election decides which hub may hold a Lease of the pool, and tells the fence which hub holds the election
// Lease.
//
// It is the part of a coordinator that knows the rules. Where Leases are kept is a Store's matter: etcd behind
// k8s.io/apiserver, or memory (package inmemory). It starts no goroutine; Run blocks until its context ends. A driver
// without goroutines shows it each write by Wrote and Follow instead.
package election
