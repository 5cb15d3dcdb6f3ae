// Package verdict decides which nodes are alive, cut off or dead, and which pods must not be evicted.
//
// A Machine is pure: it is told what was seen (a Node, a heartbeat, a policy), is stepped with the time, and returns a
// Decision. It does no I/O, starts no goroutine, reads no clock. A heartbeat is a change of renewTime in a node's
// Lease, at the moment at which the manager saw it; what time stands in the Lease does not matter.
//
// # Nodes
//
//	Unknown    not heard since this process started, and for less than Grace: nothing is known, nothing is changed
//	Normal     heard within Grace, the last time by itself
//	Delegated  heard within Grace, the last time through a peer
//	Missing    not heard for Grace
//
// # Pools
//
// A pool is silent while none of its nodes was heard for Silent, half of Grace: so a silent pool is known well before
// stock Kubernetes holds its nodes for lost, at Grace, and to be wrong about it for a moment costs nothing. A pool of
// which nobody was heard yet is silent.
//
// A node is dead once a peer of its pool was heard Grace or longer after it: the peers speak, and it does not. It stays
// dead until it is heard, also while the pool falls silent after it. Time in which the whole pool was silent is ignored
// against a node: when the pool returns, each of its nodes has Grace to be heard.
//
// # Whose pods stay
//
// A node is kept, which means that stock controllers may neither evict its pods nor mark them as not ready,
//
//   - while its pool is silent, unless it is dead or the pool's policy gave it up: Policy.Evict after Policy.After of
//     silence;
//   - after the pool returned, until it is heard or dead;
//   - while it is heard and the cloud does not see that: it is still held for unreachable, or its renewTime changes but
//     does not grow, because its clock was set back, and stock Kubernetes counts only growth. So a node that comes back
//     through a peer keeps its pods, although nothing makes it Ready before it reaches the cloud itself.
//
// Nodes without a pool are never kept. Nothing is given up while nobody at all is heard, nor for Grace after that: then
// it is the manager, or the cloud, that is cut off.
//
// A node is bound while its annotations say so: its pods are not evicted, whatever happens, but may be marked as not
// ready.
//
// A node that is not protected any more and was not heard is owed a release: while it was kept, stock controllers tried
// and were refused, and they do not try again by themselves. It is owed until Done, or until it is heard or kept again.
//
// # Restarts
//
// What cannot be seen again is in the Record of a Decision: whoever takes over is given it by Lead. A machine may hear
// before it leads; then it knows already who lives. Until Lead nothing is owed.
package verdict
