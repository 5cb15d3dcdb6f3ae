// Package ownkubelet shows logs of the pods of a node, and runs commands in them, while the cloud is away: it passes
// such requests of clients of the node to the node's own kubelet.
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
// # Who may
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
// # Bounds
//
// limit.MaxKubelet streams are open at once, limit.MaxKubeletCaller of them by one caller; beyond that it is 429.
// Headers are bounded at the hub's port and from the kubelet. Nothing is held: what comes is passed on. A stream ends
// when either end does, when the hub ends, and when the token stops being valid that began it. It does not end when
// the cloud is back. Each one is logged when it begins and ends: who, which pod, how long.
//
// New starts nothing. What a request starts ends with it.
package ownkubelet
