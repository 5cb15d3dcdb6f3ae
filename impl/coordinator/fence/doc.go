// Package fence decides from which hub a coordinator reads, so that a hub that has lost the lead is read no more. It is
// pure: no I/O, no goroutine, no clock.
//
// That is the hub of the node that holds the election Lease, and nobody else's. A Fence is shown the Lease, by reads,
// by writes and by a watch, and knows the present Leader: the node, the address of its hub, and its term, (incarnation
// of the coordinator's etcd, resourceVersion of the election Lease at the acquisition). What was read from a leader is
// valid as long as that node holds the Lease and no later term has begun: who loses the Lease and wins it back is read
// again, and so is another process of the same node. Nothing that a hub says is believed.
package fence
