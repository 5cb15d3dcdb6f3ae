// Package revocation revokes the rights of a node when its Node is deleted or leaves its pool.
//
// For each pool it keeps a roster: a ConfigMap with the nodes that the pool has. So it sees who left, even if
// weir-manager was away when that happened. A node that is on the roster, and whose Node does not exist any more, or is
// another one of the same name, or is of another pool, loses:
//
//   - its certificates inside the pool: they are entered in the pool's denylist, which the authority of the pool signs
//     (package trust). The list is a ConfigMap too. Hubs of the pool watch it;
//   - what its hub may read at kube-apiserver: a ClusterRoleBinding for each pool, weir:hub:<pool>, names the users of
//     its hubs, weir:hub:<pool>:<node>, one by one. Where somebody has made weir:hub-topology:<pool>, that one too;
//   - its grant to read that list and whom to trust, and to give both back: a Role and a RoleBinding for each pool name
//     its users, one by one;
//   - if the Node was deleted: the right to register itself again. Its name is entered in the ConfigMap that the policy
//     weir-revoked reads. The operator of the cluster makes the Node in its place, or takes the name out.
//
// The roster is written last. A manager that is stopped between these steps does them again. Something that fails, or
// cannot be written, does not keep the rest: who could not be denied stays on the roster, who finds no room there is
// granted nothing, and what others wrote and cannot be read counts for nothing.
//
// # The coordinator's certificates
//
// They have one common name, so they are known by their addresses and keys. The roster has those that were signed, and
// not what the status of the Node says, which is the node's own word. It is written before the certificate is signed.
// An address that was signed for another node of the pool as well denies neither: then the key does. Of a node
// trust.MaxKeys keys at most are alive.
//
// # Deletions that nobody has confirmed
//
// A Node may be deleted by an administrator, because it is lost or stolen, or by a controller that does not know the
// machine. Both revoke at once: whoever waits for an answer lets a thief in meanwhile. But the second is told, until
// somebody answers: by an Event, the condition DeletionsConfirmed of the Pool, and a metric. weir node revoke confirms,
// before the deletion or after it, by a line in the ConfigMap of the policy weir-revoked (Barred). weir node restore
// makes the Node again.
//
// # A cluster that was restored
//
// What was revoked after the backup, hubs of the pool hold, and give back (bulletin.Returner). What an authority of the
// pool signed of it is entered in the next list, which is above theirs. A Node that was deleted then is there again, by
// its uid: it is granted nothing.
//
// # A node that comes back
//
// It gets certificates as every node does. Those that began before are refused, so its new ones begin later:
// Revoker.Begin tells when, and that it is not known yet while its predecessor of the same name is still on the roster.
//
// # What stays
//
// kube-apiserver knows no denylist. Until the certificate for it has ended, the kubelet of a deleted Node may do there
// what the node authorizer grants to every node, and a watch that it has opened goes on until kube-apiserver ends it.
//
// # Bounds
//
// A list has trust.MaxDenials, the policy's ConfigMap MaxNames. What ends first makes room, which is an error in the
// log and a metric: replace the authority of the pool then. A pool has MaxNodes on its roster; others get nothing, and
// each look says so. A binding of MaxNodes takes 700 kB, and is written once for all nodes that join within half a
// second.
//
// # Goroutines
//
// None. Reconcile is called for a pool by the controllers of package manager.
package revocation
