// Package election decides who may hold the Leases of a pool, and tells the fence who does.
//
// It is the part of a coordinator that knows the rules. Where Leases are kept is a Store's matter: etcd behind
// k8s.io/apiserver, or memory (package inmemory). It starts no goroutine; Run blocks until its context ends. Whoever
// has no goroutines shows it each write by Wrote and Follow instead.
package election
