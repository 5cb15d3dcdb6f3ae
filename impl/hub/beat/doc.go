// Package beat gets the heartbeats of the node's kubelet to the cloud, directly or through the pool, so that the node
// stays alive.
//
//	kubelet ─► Beats ─► cloud
//	            ├ Mirror ─► coordinator ─► Forwarding of the hub that leads ─► cloud
//	            └ RollCall ─► desk in the pool ─► Reporter of the hub that leads ─► cloud
//
// Beats passes a heartbeat to the cloud, or answers it itself; package heartbeat decides. Mirror writes how the node is
// to the pool's coordinator. Forwarding, on the hub that leads, speaks there for nodes that are cut off. RollCall hands
// in each heartbeat at the pool's roll call (package heartbeat), and Reporter, on the hub that leads, brings all of
// them to the cloud at once.
//
// The constructors start nothing. Mirror.Run, Mirror.Announce, Forwarding.Run, Reporter.Run and Overdue block until
// their context ends, and wait for what they began.
//
// # Heartbeats
//
// A request for the Lease of this node by its kubelet is a heartbeat. It is passed to the cloud, to one server after
// another (see uplink.Urgent), and mirrored in the coordinator where that is worth a write (heartbeat.Statement). If it
// does not get through, the hub answers it itself and annotates the mirrored Lease; package heartbeat decides, and says
// why. A kubelet changes only the renewTime of what it has read. So that goes as a patch, on condition of the version,
// and metadata come back, from which the hub makes the kubelet's answer. The first patch also takes the managedFields
// of the Lease away, which cost more than all the rest; kube-apiserver keeps none until a forward brings them. What
// changes more, or what a cloud does not take as a patch, goes byte for byte, but when it carries an annotation of
// Weir's, is to carry one, or would not grow: then it is decoded and rewritten, once, without fields that this build
// does not know. Some heartbeats carry what the hub tells of itself (package digest), one in an hour mostly; the next
// one takes it away. Requests about the Lease with a token, an impersonation or a compressed body are no heartbeats and
// go through the proxy.
//
// While signed receipts say that the Lease grows by the roll call (heartbeat.Cover), a heartbeat that only renews is
// answered at once, from what is held, and not passed. Each half an hour one is passed all the same, and so is each
// that carries something or takes it away. It has no version then: weir-manager writes the Lease as well. One that was
// left to the pool is passed later if no receipt comes (Overdue).
//
// All hubs watch delegated Leases in the coordinator; the one that leads forwards them, with a certificate of its own,
// since NodeRestriction lets no node touch the Lease of another. A forward is a PATCH of some 90 bytes whose answer,
// the metadata of the Lease, tells the version for the next.
package beat
