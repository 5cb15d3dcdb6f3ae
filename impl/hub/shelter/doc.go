// Package shelter serves the clients of the node while the cloud is away, from the answers that passed through the hub
// before.
//
// Package identity decides which caller may have what, packages store and offline hold the answers, what becomes of
// writes by package writes. A Shelter decides which of the two answers: the cloud (Serve, Observe), or the store
// (Serve, Rescue, Take). Admit lets in this node with a certificate that has expired.
//
// New starts nothing. Run blocks until its context ends, and then until the last request was served and the store is
// written. None takes the place of a Shelter in a hub that keeps nothing.
//
// # Gets of pods
//
// While the cloud is there, it is not asked for a pod that the kubelet of this node gets and that a watch of the same
// kubelet has just shown (see watched): the answer comes from the store.
//
// # Writes of the kubelet
//
// The cloud answers a status or a deletion with the whole object, which the kubelet's own watch then brings again. The
// hub holds that object. So a Brief asks the cloud for the metadata alone, and makes the whole answer itself. That
// answer is not kept: the watch brings what the cloud says.
//
//	request                            what the cloud is asked                 what the hub makes of the answer
//	PATCH pods/status, nodes/status    the same on condition of the version    that version with the same patch
//	DELETE pods, at once               that the hub holds, for metadata        that version
//
// A status of a Node that brings nothing but later heartbeat times of its conditions stays here, see onlyBeats: the
// kubelet is answered with the Node as it is at the cloud, at the version that it has there. When these times are half
// an hour old at the cloud, or anything else changes, the next status passes.
//
// Each of the others gets the metadata of the answer: its resourceVersion is the cloud's. Nothing that is made here is
// stored as the cloud's word.
//
// # When requests of a Brief pass as they are
//
// A request passes as it came if no open watch of the caller holds the object, or if the request is not what a kubelet
// sends: a dry run, another kind of patch, a version of its own, fields that are not known here. If somebody else wrote
// meanwhile, the cloud refuses the brief request, and the hub sends the one that came. The caller sees only the answer
// to that one.
//
// # Where the answer of a Brief could be wrong
//
// The cloud does more than a patch says: it keeps some fields, and sets others. What is known of that is in prepare.go.
// So each answer is compared with what the watch shows at the same version, before or after the answer. At the first
// difference such requests pass as they are until the hub restarts: one line in the log has the field.
//
// # What is kept
//
// With --data-dir the relays are kept on disk (package snapshot), and so are the cloud's decisions: a hub that restarts
// while the cloud is away serves on. The header contract.AgeHeader of each read tells how old the state is, wherever
// this hub has it from.
//
// What passes the proxy is kept as well, and answers reads while the cloud is away (packages store and offline). The
// cloud is away when each of its servers was judged and none is healthy. A read that cannot connect before anybody has
// judged the cloud is answered so too, and so is one that waits for an answer when the cloud is judged to be away, or
// for a connection for 200 ms after a start. Watches without the cloud end when it is back. Who may read is told by
// package identity; who may read a collection may also get what is in it.
//
// What the node's own certificate reads of its own Node and its own pods is node-scope in this, also if pods and nodes
// are in pool scope: it is passed and kept (relayed.Target.OfNode). Others read relays, which show what the cloud has,
// without what waits here.
//
// Statuses and Events that this node writes meanwhile, with a certificate that is valid, are kept for the cloud, on
// disk. A write of its Node by another client of the node is answered if it would change nothing and the client may get
// that Node; any other write is refused (package writes). When the cloud is back, heartbeats pass at once, the rest
// over five seconds: first what waits of statuses; then clients, who are served as before until then. If the hub's own
// certificate has expired meanwhile, nothing of it is lost: it waits until the files are replaced.
//
// A hub that lost its disk while the cloud is away reads what the pool has, at the coordinator, and knows its age. But
// it does not know whom the cloud has allowed to read that: its callers get 503, with a reason, until the cloud can be
// asked. This goes for the node itself as well: that its certificate was once good for a read is not known either. A
// coordinator that lost its disk asks the hubs what they hold: they tell it where they show that (package beat).
package shelter
