// Package demand counts which resources clients of this node read of the whole cluster, so that a person can decide
// what the pool is to share.
//
// A read of the whole cluster is a list or watch without a namespace, whose selectors do not ask for one object, one
// value or this node. Passed counts the bytes of the cloud's answers to such reads, as they came over the link. Relayed
// notes that a client read what the pool shares. Reads tells both, in the form in which a hub tells it to the cloud
// (package digest).
//
// Bytes are those of the last 24 hours. What nobody stays with is told under no name: a person who lists all Pods once
// is no reason to share them.
//
// Whatever clients ask for, MaxNames resources have a name here. A resource that comes then takes the place of the one
// with the least bytes. What nobody should share (digest.Private) has no name at all.
//
// It starts no goroutine.
package demand
