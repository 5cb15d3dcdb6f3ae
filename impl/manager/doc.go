// Package manager is weir-manager, the part of Weir in the cloud. It distinguishes nodes that are cut off from nodes
// that are dead, marks the Node, and keeps the stock controllers of Kubernetes from evicting the pods of a node that is
// only cut off. It uses controller-runtime.
//
// Package verdict decides; everything here is thin around it. Watches of Nodes and of the Leases in kube-node-lease
// feed one machine, which is stepped fifty times in a node-monitor grace period, in every replica. The replica that
// leads acts:
//
//   - cutOff sets and takes away taint and condition of a Node;
//   - keeper writes the names of kept and of bound nodes into two ConfigMaps, which admission policies read, and
//     releaser makes up for what stock controllers were kept from once a node is given up;
//   - forwarders keeps one Role and RoleBinding for each pool;
//   - package renewals renews the Leases of nodes that their pools report as heard;
//   - package certificates approves and signs certificates;
//   - package pools keeps NodePools, their leader hubs and the objects leader-hub-<pool>, and Pools with what hubs tell
//     of themselves, which its Ledger notes in every replica.
//
// # The three states
//
// Normal: nothing is written. Delegated, which is one heartbeat with contract.DelegateHeartbeat: the taint
// contract.CutOffTaint:NoSchedule, the condition contract.CutOffCondition with reason and since when, and an Event; all
// undone by the first heartbeat of the node itself. The node stays Ready, so pods and endpoints stay as they are.
// Missing: stock Kubernetes works undisturbed.
//
// The condition is a type of its own. NetworkUnavailable, by which OpenYurt's documents disable eviction, belongs to
// anyone who sets up routes on the node (a cloud provider, a CNI plugin): two writers would undo each other's work.
// Stock Kubernetes turns it into the taint node.kubernetes.io/network-unavailable:NoSchedule, which is the same effect
// as ours, but it stops no eviction. And a node that is cut off has a network.
//
// Other parties' taints are never lost: a patch replaces the list only at the version that was read, else it is tried
// again. Conditions are merged by type.
//
// # A silent pool
//
// When no node of a pool is heard, stock Kubernetes (1.37, read in its source) does this. The node lifecycle controller
// marks each node Ready=Unknown after the grace period, and in the same pass each of its pods as not ready
// (MarkPodsNotReady), so that all EndpointSlices say so. It taints the node unreachable:NoExecute, at most one node in
// ten seconds. Taint eviction then deletes each pod when the time is over that it tolerates this, 300 s mostly: it
// tries five times in 50 ms and then forgets the pod until the taints or its tolerations change. Both act as
// system:serviceaccount:kube-system:node-controller, or as system:kube-controller-manager without
// --use-service-account-credentials.
//
// Weir lets the node be Unknown, which is the truth, and holds back the two consequences for pods by admission policies
// (package manifests), which kube-apiserver evaluates itself:
//
//   - weir-keep-pods, a ValidatingAdmissionPolicy, denies these users to delete pods of listed nodes. As
//     system:kube-controller-manager may be all controllers, of that user only deletions of pods that carry taint
//     eviction's mark (DisruptionTarget, DeletionByTaintManager) are denied. The mark itself, and the Event before it,
//     are let through; stock Kubernetes takes the mark away after two minutes.
//   - weir-keep-ready, a MutatingAdmissionPolicy (Kubernetes 1.36), puts back the conditions that a pod of a listed
//     node had, when one of these users would make it not ready. The update succeeds and changes nothing.
//
// Why the second does not deny: the node lifecycle controller repeats a denied MarkPodsNotReady for every pod of the
// node in every pass, every 5 s, with an Event each, at the 20 requests a second that it has. A silent pool of 600 pods
// would stretch a pass to a minute, and a node that dies elsewhere would be noticed that much later. What succeeds is
// not repeated.
//
// A pool is listed when none of its nodes was heard for half the grace period, long before the controllers act, and a
// list that names living nodes has no effect. Alternatives:
//
//   - A webhook has to be up, and reachable from kube-apiserver, at the moment at which things go wrong, and decides
//     between failing open, which evicts, and failing closed, which stops deletions. A policy needs neither this
//     process nor a network. If weir-manager is down, what it listed last goes on to be kept.
//   - Tolerations without end on all pods change what other people wrote, for all pods and all the time, and do not
//     keep endpoints. They are also copied into the pods' history, and `evict` would have to change every pod.
//   - Renewing the Leases of silent nodes would keep them Ready, and would be a lie to everybody: to people,
//     schedulers, load balancers. And it evicts as soon as weir-manager is down.
//   - Denying the node lifecycle controller to mark the Node: ten requests for each node and pass, and Ready=True again
//     says what nobody knows.
//
// Callers outside the pool see endpoints of a silent pool as ready, and their calls fail or wait if the network between
// is cut as well. That is the price: nobody in the cloud can tell a pool without uplink from one without power. A
// Service that is called from outside should prefer its own pool or zone (trafficDistribution), or its pool should be
// given up (Evict).
//
// # When the pool returns
//
// Because its pods never became not ready in the cloud, nothing wrong is delivered to a pool whose link comes back. A
// node stays listed until it was heard and the cloud holds it for Ready again without the unreachable taint: the
// kubelet needs up to 10 s to report, the controllers up to 5 s more. The same holds for a node that comes back through
// a peer and cannot report itself. Holding back the readiness flips in the hubs instead would need a rule there about
// which news of the cloud to believe, and callers in other pools would see the flips.
//
// # Giving up
//
// A pool's policy is whenSilent of its Pool, else --when-silent: keep it, or evict after a time of silence. Evict takes
// its nodes off the list. So does a node's death: its peers are heard again and it is not. As the controllers have
// forgotten by then what they were denied, such a node is released when every kube-apiserver knows the shorter list (a
// tenth of the grace period): its pods are marked not ready, and its unreachable taint is taken away for a moment and
// set again, which makes taint eviction forget what it had begun to count, and begin again. It then gives each pod the
// time that it tolerates. A node that was not heard since it was tainted, and whose pods' times are not over, keeps its
// taint: they are counted on, and a pool that is given up early is evicted when stock Kubernetes would have done so.
// Stock's own limits, for example that nothing is evicted while every zone is silent, go on to hold.
//
// Pods bound to their node are never evicted: those of Nodes annotated with contract.BindingAnnotation,
// contract.AutonomyAnnotation or contract.AutonomyDurationAnnotation, and pods annotated with the first. Of a dead node
// they are marked as not ready as any others.
//
// # When weir-manager is away
//
// The policies are in force without it. Pools that were listed stay so; one that falls silent meanwhile is treated as
// stock Kubernetes does: not ready after the grace period, evicted some five minutes later unless weir-manager is back.
// Pools whose time to be given up comes are kept. Two replicas listen, so that a new leader knows who lives and is
// there within --leader-elect-lease-duration.
//
// A cloud that was away shows, when it is back, heartbeats of before as new, and a pool counts as heard when they are
// seen. So lists and watches are tried again each second (prompt); client-go's own pauses of up to a minute would be
// too long.
//
// A process that starts has seen no heartbeat and believes none: taints and conditions stay as they are until it has
// seen a change itself, and every pool counts as silent, and is listed, until one of its nodes is heard, some seconds
// later. What cannot be seen again (which nodes are dead, since when a pool is silent, what is owed) is in the
// ConfigMap beside the list. Times there are those of the leader's wall clock: one that was set back makes a silence
// shorter. A leader that loses its Lease ends its process. If nobody at all is heard, nothing is given up.
//
// # What a forwarder may
//
// RBAC says whose Leases: Role weir-forwarder-<pool> names the nodes of the pool, get, update and patch, for the users
// weir:forwarder:<pool>:<node> of those that may lead. The policy weir-forwarders says what: renewTime grows, and the
// annotation is set. Stock controllers count nothing that is earlier than the latest renewTime that they have seen, and
// forget it only with the Node. So renewTime may be at most five minutes ahead of kube-apiserver's clock. A policy has
// no clock; it takes the time of the entry of managedFields that has the field renewTime. The write changes that field,
// so kube-apiserver takes it from all other entries, and the time of the writer's own is the server's. Entries without
// the field are not believed, since clients can write them. kube-apiserver keeps no managedFields of an object that has
// none (skipNonAppliedManager of apimachinery), so a forward brings an entry then. Package beat says why a Lease has
// none.
//
// The same policy holds weir-manager to the renewTime, where it renews Leases of nodes that pools report as heard. It
// takes the annotation away, and never sets it.
//
// # Who says what a node belongs to
//
// NodeRestriction protects labels of kubernetes.io only. A kubelet could label its Node into any pool, and that pool
// would never be silent again; or bind its pods, and they would stay in all Services for ever. So could agents on it
// that may patch statuses. The policy weir-membership denies both to nodes, to everybody at a status, and to anyone who
// lacks the verb assign on nodepools.apps.openyurt.io. Administrators have it.
//
// The policy weir-manager narrows what RBAC cannot: whoever steals the token of weir-manager can taint nodes as cut off
// and make pods not ready, and can neither give pods other addresses nor nodes other labels.
//
// # Uninstalling
//
// `helm uninstall` runs weir-manager as a Job before and after, by the flags --may-be-uninstalled and
// --remove-what-it-made. The first reports whether it is safe (checkRemovable), the second removes the objects that
// weir-manager made while it ran (removeMade). It never removes the objects of the chart, and no NodePool.
//
// # What it asks for when nothing happens
//
// Nothing, but for watches that have ended, and its Lease. Policies, their bindings and ConfigMaps are watched one by
// one, since a grant can name them so (package manifests). A replica that waits sees the Lease by a watch as well; it
// asks kube-apiserver before it takes the Lease. The leader tries to renew every --leader-elect-retry-period, and
// leaves out a renewal after which it would still end before anyone may take the Lease: with the defaults every second
// one. Longer periods would save more, and the next leader would come later.
//
// # Goroutines
//
// New starts none. Run starts those of controller-runtime and ends them when its context does.
package manager
