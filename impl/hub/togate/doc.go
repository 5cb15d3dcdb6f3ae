// Package togate is what a hub has of weir-gate, where the cloud has one. Which one that is the pool is told in its
// signed directory.
//
// Gate leads the hub to the relay beside kube-apiserver. member.Gate decides whether it is taken; without it the hub
// reads at kube-apiserver, and goes on at the version that it has reached.
//
// # The way in
//
// WayIn is the way from the cloud into the pool: while the hub leads, it keeps a connection to each replica of
// weir-gate, and dials inside the pool what the cloud asks for. Package reverse has the connections. In a pool of
// leader hubs the first two that are named keep them.
//
// What is dialed is judged here, and the gate is not believed: the kubelet's port of a node whose Node at
// kube-apiserver is of this pool and has that address, and what spec.reach of the directory names. The Node is asked
// for by its name, as the hub's own user, when the first connection to it is wanted, and believed for five minutes. So
// nothing is asked while nobody reaches into the pool.
//
// A hub that leads no more takes no more connections. Those that there are last for ten minutes, since a person may be
// in the middle of one: dialing from this node is as good as from another one. Bytes are those of uplink.ClassReach.
//
// New and NewWayIn start nothing. Gate.Run and WayIn.Run block until their contexts end, and leave no goroutine behind.
package togate
