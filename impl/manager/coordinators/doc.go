// Package coordinators runs the coordinator of a pool as a Pod of weir-manager's own, where a Pool names an image.
//
// There is one Pod, on the network of its host, bound to a node of the pool by its name: no scheduler is asked, and no DaemonSet or Deployment stands between, whose
// controllers live in the cloud. The kubelet of the node reads its Pods through its hub, which keeps them on disk. So the coordinator starts again without the
// cloud, as everything does that ran on the node before. What it needs is on the host: its data and its certificates, which the hub of the node gets for it
// (--enrol-coordinator-dir). It has no token of the cloud, tolerates every taint and is not evicted.
//
// # Where
//
// It stays where it is while that node may run it: the node is of the pool, is selected, and is not lost for longer than lostAfter while others of its pool are heard.
// Else a node that may is chosen: in the order of spec.coordinator.nodes, or by a hash of pool and node. Nothing is moved while the pool is silent: the cloud
// cannot know better then.
//
// # Moving
//
// The new one is started first. Hubs are told its address when it is ready, and go there; the relays there are filled by the leader of the pool, and hubs resume by
// version. The old one goes linger later. Until then hubs are told of the old one. A new image is put into the Pod that there is: the kubelet starts it anew in
// its place, and hubs serve from their relays meanwhile. A coordinator that is not wanted any more goes linger later as well.
//
// # What a stolen token of weir-manager could do
//
// The policy weir-manager-coordinators lets weir-manager make Pods of this form only, with an image that whoever administers the cluster has put into the ConfigMap
// contract.CoordinatorImages. weir-manager cannot write it.
//
// # Goroutines
//
// None. Keep is called by package pools, for one pool after another.
package coordinators
