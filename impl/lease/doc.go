// Package lease keeps Leases in memory, by the rules of a Kubernetes API: with versions, preconditions and watches. A
// leader hub keeps those of the nodes of its pool there; so does the coordinator of tests and simulations, for which
// package coordinator/inmemory adds the election.
//
// A Store has the Leases, a Policy says who may write them and how long they are kept, and Handler serves them over
// HTTP. Decode, Encode and the functions beside them read and write the Lease of a node, which is its heartbeat: as a
// kubelet sends it, as the cloud and the pool's coordinator keep it, with the annotation by which others speak for a
// node that is cut off.
//
// # In a leader hub
//
// A hub writes there how its node is, as it would at a coordinator (package beat), and the leader hub forwards for
// those that are cut off. Nothing is on a disk: a leader hub that starts again knows nobody until the next heartbeat,
// some ten seconds later, and a hub that reads another leader hub writes there. What nobody has written for a while is
// forgotten, so a hub that went elsewhere is not spoken for twice. Each hub writes the Lease of its own node and no
// other. The number of Leases is bounded, and so is each of them.
//
// A Store starts no goroutine. Follow and Delegated block until their context ends.
package lease
