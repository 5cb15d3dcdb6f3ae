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
//
// # Logs and commands
//
// Kubelet shows logs of the pods of a node, and runs commands in them, while the cloud is away: it passes such requests
// of clients of the node to the node's own kubelet.
//
//	kubectl logs, exec, attach, port-forward ─► hub ─► the cloud ─► this node's kubelet     the cloud is there
//	                                            hub ─────────────► this node's kubelet      it is away
//	                                            hub ◄──── may the hub? ───────┘
//
// While the cloud is there nothing changes: the request goes to kube-apiserver, end to end.
//
// # Which requests
//
// GET of pods/log, and GET or POST of pods/exec, pods/attach and pods/portforward, of one pod. The node's store has to
// know the pod, as its kubelet watches its own. A pod of another node is answered 503: its own hub is to be asked.
// Container and parameters become those of the kubelet as in kube-apiserver (pkg/registry/core/pod/strategy.go,
// Kubernetes 1.37): the only container of a pod need not be named, another one does. (Which is the default one of
// several is kubectl's to choose, by an annotation.) Nothing else of the request reaches the kubelet but the headers
// that choose a protocol: no token, no cookie, no name to take on.
//
// WebSockets and SPDY pass as they are. A kubelet of 1.36 and later takes the WebSockets of kubectl. An older one
// refuses them, and kubectl takes SPDY then.
//
// # Who may have logs and commands
//
// The one to whom the cloud granted it last, by package identity. It never fails open: what nobody decided is 503.
//
//	log                             get of pods/log
//	exec, attach, portforward       create of its subresource, and what the method of the request says besides: get for
//	                                a WebSocket. (kube-apiserver: AuthorizePodWebsocketUpgradeCreatePermission)
//
// Such requests pass through the hub without a question, so the hub has to learn (Observe). When the cloud has answered
// one, and did not refuse it, the hub asks by a SelfSubjectAccessReview of the same caller whether it may do that in
// the whole namespace: 500 bytes, once in five minutes. Who may do it with pods of some names alone is remembered by
// what was answered for each of them. Then a WebSocket needs more than can be known, and is refused.
//
// So who wants to read logs without the cloud has to have read some with it, through this hub, in the same namespace,
// in the last 7 days (--offline-access). The same goes for exec. A right that was taken away meanwhile stays for so
// long, as for reads.
//
// # How the kubelet lets the hub in
//
// The hub shows the certificate of its own user, weir:hub:<pool>:<node>. Where it has none, it shows the node's. The
// kubelet checks that by the cluster's authority (authentication.x509.clientCAFile), which takes no cloud. Then it asks
// its API server by a SubjectAccessReview whether that user may get or create nodes/proxy of this node. (The
// fine-grained authorization of KEP-2862 has nothing finer for these paths: pkg/kubelet/server/auth.go of 1.37.) Its
// API server is this very hub. So the hub answers that review itself, if all of this holds:
//
//   - the review comes from this node, by its certificate, and in no other name;
//   - the user is the one that the hub shows, and the certificate is the very one, where the review names it;
//   - it asks for get or create of nodes/proxy, of this node, and nothing else;
//   - a request of the hub's own, with that verb, is waiting for the kubelet's answer, for 30 seconds at most.
//
// Every other review is answered as before: 503 without the cloud. The answer is no right of a caller's: who calls was
// judged before. The kubelet remembers the answer (authorization.webhook.cacheAuthorizedTTL, 5 minutes) for that one
// certificate, whose key only this machine has.
//
// A kubelet with authorization.mode AlwaysAllow asks nobody. One that takes no client certificates, or calls another
// API server than this hub, refuses: the answer is 503, and says which.
//
// # Where the kubelet is
//
// At 127.0.0.1:10250. Its certificate is not checked: by default it has signed that itself, and kube-apiserver does not
// check it either without --kubelet-certificate-authority. So the address has to be of loopback, where only this
// machine answers. A process of this machine that takes the port of a kubelet that is down could answer in its place.
// It would see commands and what is typed, and no credential of anybody.
//
// # Bounds of logs and commands
//
// limit.MaxKubelet streams are open at once, limit.MaxKubeletCaller of them by one caller; beyond that it is 429.
// Headers are bounded at the hub's port and from the kubelet. Nothing is held: what comes is passed on. A stream ends
// when either end does, when the hub ends, and when the token stops being valid that began it. It does not end when
// the cloud is back. Each one is logged when it begins and ends: who, which pod, how long.
//
// NewKubelet starts nothing. What a request to a Kubelet starts ends with it.
package shelter
