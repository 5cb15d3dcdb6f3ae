// Package renewals renews the Leases of the nodes that their pools report as heard. So a pool with twenty nodes that
// all live sends one small object where each node would send its own heartbeat.
//
//	kubelets ──► hubs ──links──► leader ──report──► Lease weir-pki/weir-heard-<pool>, holderIdentity
//	                               ▲                                │
//	                               └───────receipt, signed──────────┤
//	                                                          weir-manager ──► Leases kube-node-lease/<node>
//
// Package heartbeat has the report and the receipt, and judges each entry: a leader that lies must gain nothing. This
// package reads, asks, writes and signs.
//
// # What is renewed
//
// A Lease is renewed for an entry that names a node of that very pool, by the label of its Node, and that has a link of
// the node's own chain. The chain leads back to the anchor on the node's Lease, which only the node can have written.
// The renewTime grows, nothing else changes, and no Lease is made. A Lease with the mark of a node that is cut off is
// left alone: it belongs to the forwards of the leader, and an entry may be older than those. The receipt then says
// that it was not renewed, so the node's hub renews it as soon as it can, and takes the mark away. A write is on
// condition of the version. If somebody else has written meanwhile, the Lease is looked at again: what the cache had
// may be old, and a receipt must not say of a Lease that it was renewed when it was not.
//
// The renewTime grows by about as much time as has passed since it was seen to change (heartbeat.Onward). So it stays a
// time of the node's own clock, and what the node itself writes next is later.
//
// The leader finds the receipt in the answer to its next report. A node that is not among the renewed ones renews its
// Lease itself, as without reports. So a leader that leaves nodes out costs bytes, and no node its readiness. The same
// is true while no replica of weir-manager leads, or while no key of the pool's authority is here. A key that another
// signer has can be handed over as the Secret pool-<pool>; this package reads it, makes none, and signs receipts only.
//
// # Poison
//
// Each pool is one item of a queue, and each entry has its own outcome. What is wrong with one is counted, logged at
// most once a minute for each pool, and stops no other. However often a leader writes, its report is looked at four
// times in the time between two honest ones at most.
//
// # Goroutines
//
// Add starts none. What it adds to the manager has those of a cache and of two controllers, which end with its context.
package renewals
