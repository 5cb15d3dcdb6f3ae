// Package coordinators runs the coordinator of a pool as one or three Pods of weir-manager, if the Pool asks for one
// and names no servers.
//
// Each is on the network of its host, bound to a node of the pool by its name: no scheduler is asked, and no DaemonSet
// or Deployment stands between, whose controllers live in the cloud. The kubelet of the node reads its Pods through its
// hub, which keeps them on disk. So a coordinator starts again without the cloud, as everything does that ran on the
// node before. What it needs is on the host: its data and its certificates, which the hub of the node gets for it
// (--enrol-coordinator-dir). It has no token of the cloud, tolerates every taint and is not evicted.
//
// # The record
//
// The status of the Pool says where replicas are to be (record). It is written before anything is done, so nothing is
// placed twice, and another weir-manager goes on from it. Each stay of a replica on a node has a name of its own, its
// placement. A Pod and the data on the node's disk are of one placement: what the disk has of another one is removed
// when the replica starts.
//
// # Where
//
// A replica stays where it is while that node may run it: the node is of the pool, is selected, and is not lost for
// longer than replaceAfter while others of its pool are heard. Else another node is chosen: in the order of
// spec.coordinator.nodes, or by a hash of pool and node. Nothing is moved while the pool is silent: the cloud cannot
// know better then.
//
// # Moving one
//
// The new one is started first. Hubs are told its address when it is ready, and go there; the relays there are filled
// by the leader of the pool, and hubs resume by version. The old one goes linger later. Until then hubs are told of the
// old one.
//
// # Three
//
// They begin together, as one etcd. Hubs are told of them when a majority serves. Of three at most one is placed again,
// or gets another image, at a time, and only while the two others serve. The new one comes to those two: they hear of
// it through leader-hub-<pool> and the hub that leads, remove the former one from etcd, and take the new one in. Nobody
// is restarted for it. If fewer than two are left, all three are placed again, and begin as another etcd: what the
// former one held are Leases, which hubs write again, and relays, which the leader fills. Going from one to three, or
// back, is the same.
//
// # Another image
//
// A Pool that names none has that of the release, which the chart writes into the ConfigMap contract.CoordinatorImages:
// after an upgrade of the release it is another one. If there is no release either, what runs is left as it is.
//
// The image is put into the Pod that there is: the kubelet restarts it in its place, and hubs serve from their relays
// meanwhile. Pods that are not wanted any more go linger later.
//
// # Never two that elect
//
// While a coordinator is moved, the old one and the new one run at the same time. Four things keep both from electing a
// leader:
//
//   - Hubs go by one entry, leader-hub-<pool> at its highest version, which names the ones or the others.
//   - A hub leads only while it reaches the cloud, where it follows that entry itself.
//   - A coordinator that hears, from the hub that leads, of an entry in which it is no replica
//     (contract.LeaderHubReplicas) elects nobody any more. The holder of the Lease may renew it until it has gone to
//     the new one.
//   - Of three a majority elects. A replica that was removed from etcd, or whose certificate is of none of the replicas
//     of now, is not let in by the others, whatever is on its disk. Another etcd has another name
//     (--initial-cluster-token), so replicas of two are never taken for some of one.
//
// What is copied from the cloud keeps the cloud's versions, so even a leader too many could only cost bytes.
//
// # What stays on the disk
//
// /var/lib/weir/coordinator of a node that ran a replica: data, which the next placement on that node removes, and
// certificates, which end by themselves. Both may be removed by hand when no Pod is there.
//
// # What a stolen token of weir-manager could do
//
// The policy weir-manager-coordinators lets weir-manager make Pods of this form only, with an image that whoever
// administers the cluster has put into the ConfigMap contract.CoordinatorImages, or that of the release. weir-manager
// cannot write it.
//
// # Goroutines
//
// None. Keep is called by package pools, for one pool after another.
package coordinators
