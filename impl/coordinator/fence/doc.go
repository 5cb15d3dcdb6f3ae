// Package fence decides who may feed the relays of a coordinator. It is pure: no I/O, no goroutine, no clock.
//
// A feed is fenced by its term, (incarnation of the coordinator's etcd, resourceVersion of the election Lease at the acquisition), and
// by its node, which its certificate proves. A Fence is shown the election Lease, by reads, by writes and by a watch. It lets a
// feed begin if its node holds the Lease and its term is of this life of the etcd, not over, and not ahead of the Lease; it lets one
// go on for as long as its node holds the Lease and no later term has begun.
package fence
