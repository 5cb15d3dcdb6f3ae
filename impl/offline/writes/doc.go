// Package writes queues the writes of a node's clients while the cloud is away, and sends them when it is back. The hub
// passes every write to it (Take), and runs it (Run). Package queue holds the waiting writes, and package store holds
// the earlier answers of the cloud.
//
// # What is answered while the cloud is away
//
//	PUT, PATCH nodes/<own>/status          queued; labels and annotations in it, too, as kubelets write them through the
//	                                       status
//	PATCH nodes/<own>                      queued, if it changes labels and annotations alone
//	PUT, PATCH pods/<of this node>/status  queued
//	POST, PATCH events                     queued, of the core group and of events.k8s.io, at a bounded rate (429 above)
//	POST nodes, the own and known          409 AlreadyExists: else a kubelet never leaves its registration, and sends no
//	                                       status
//	POST serviceaccounts/<x>/token         the last token that was issued for the same account, pod and audiences, while
//	                                       hubs take it
//	PUT, PATCH nodes/<own>/status and      the Node, if the write would change nothing: for any client of the node that
//	PATCH nodes/<own>, of other clients    may get it (see unchanged)
//	anything else                          503 with Retry-After, and a Status that says what is possible
//
// All but that of other clients only for the node itself, proved by certificate: what is queued is pushed as the node,
// so whoever else had something queued would be lent the node's identity. With a certificate that has expired nothing
// is queued, since it would be pushed with one that is good; registration and tokens are answered. Heartbeats, the
// writes of the node's own Lease, do not come here.
//
// Bodies are JSON or protobuf, patches strategic merge patches or merge patches, applied as kube-apiserver does with
// the same libraries. A patch is applied to the object as it is now: as the cloud last showed it, with what waits. The
// answer is that object, in the encoding that the client accepts, with the cloud's last resourceVersion: a version of
// ours could be one that the cloud gives to another state. Preconditions (uid, resourceVersion) hold against it. A
// write is answered after it is on the disk.
//
// Three answers are not the cloud's:
//   - 404 for a patch of an Event that does not wait. A node cannot read events, so the hub does not know them. A
//     recorder that hears 404 creates the whole Event under its old name; when that is pushed, the cloud's Event is
//     brought up to its count.
//   - A status that is newer than the types of this build: of a PUT in protobuf the new fields are lost, a PATCH is
//     refused.
//   - The uid of an Event is not there yet.
//
// # What clients see
//
// Overlay gives an object of the store with what waits. A server of reads from the store calls it.
//
// # When the cloud is back
//
// Four things come back to it, in this order (Phase):
//
//  1. Heartbeats: at once, they do not wait for anything here.
//  2. This node's turn: a random part of Config.Spread after the cloud is back, so that nodes that were cut off
//     together do not return together; at most as long as the cloud was away, so that a glitch costs nothing.
//  3. What waits of statuses: the node's, then those of its pods, each in the order of their last writes.
//  4. Clients: until then they are to be answered as if the cloud were away (Holding). Else a kubelet would be shown
//     the cloud's old status in place of its own. So it is from the start of a hub that finds something that waits,
//     too. Events are pushed beside that, ten a second.
//
// Clients wait for at most Spread + Patience, 15 s. Patience, 10 s, is what 30 pods and a node need over a link of 160
// ms: a read and a write each, one after the other. It is a bound on how late the node hears what the cloud decided; a
// controller that waits for the node allows more (40 s until it is not ready). It is no bound on correctness: while
// anything of an object waits, writes of that object are queued behind it, also if the cloud is there, so a later write
// is never undone by an earlier one.
//
// How conflicts are resolved, and why nothing is lost or done twice, package queue says. Here is how the cloud is
// asked: a pod is read as a list of one, since a node that gets a pod that is gone is answered 403; an Event by a patch
// of nothing, since a node may not get events. 401 is about the hub's certificate, and drops nothing: when that is
// renewed, clients are held back once more until what waits is there (Renewing). 403 counts only if it stands for 10 s:
// kube-apiserver answers it, too, while its admission plugins start. What a push made of an object is shown to the
// store before its entry goes, so nobody sees an older state in between.
//
// # Tokens
//
// Tokens that the cloud issues to this node are kept as they pass (Observe), as objects of store.Tokens, which are
// encrypted at rest if Secrets are, and dropped when no hub takes them any more: Config.Allowance after their end. How
// long one is valid says its own claim: kube-apiserver tells kubelets an hour, so that they ask again, and takes it for
// a year (--service-account-extend-token-expiration). Managed clusters often take it for just that hour. Then a machine
// that starts without the cloud gets a token that has ended, which its pods can use as long as hubs take it. The answer
// has the hour, so a kubelet asks for a new one as soon as there is somebody to ask.
//
// # Goroutines
//
// Run is two: one follows the cloud, one pushes. Its context ends both. All other methods may be called by many.
package writes
