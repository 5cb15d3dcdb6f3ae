// Package togate leads a hub to weir-gate, where the cloud has one: the relay beside kube-apiserver. Which one that is
// the pool is told in its signed directory. member.Gate decides whether it is taken; without it the hub reads at
// kube-apiserver, and goes on at the version that it has reached.
//
// New starts nothing. Gate.Run blocks until its context ends.
package togate
