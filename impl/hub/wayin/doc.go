// Package wayin is the way from the cloud into the pool, in a hub: while it leads, it keeps a connection to each
// replica of weir-gate, as the signed directory of the pool tells, and dials inside the pool what the cloud asks for.
// Package reverse has the connections. In a pool of leader hubs the first two that are named keep them.
//
// What is dialed is judged here, and the gate is not believed: the kubelet's port of a node whose Node at
// kube-apiserver is of this pool and has that address, and what spec.reach of the directory names. The Node is asked
// for by its name, as the hub's own user, when the first connection to it is wanted, and believed for five minutes. So
// nothing is asked while nobody reaches into the pool.
//
// A hub that leads no more takes no more connections. Those that there are last for ten minutes, since a person may be
// in the middle of one: dialing from this node is as good as from another one. Bytes are those of uplink.ClassReach.
//
// WayIn.Run blocks until its context ends, and leaves no goroutine behind.
package wayin
