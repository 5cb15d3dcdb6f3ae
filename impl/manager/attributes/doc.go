// Package attributes copies the labels, annotations and taints of a NodePool to the Nodes of its pool. It removes them
// when the NodePool changes, when a Node leaves the pool, or when the NodePool is deleted.
//
// What was put is recorded in an annotation of the Node, contract.PoolAttributes. Each line of it is one label, one
// annotation with a digest of its value, or one taint. So it is known, also after a restart, what may be removed: what
// is in the record, and still has the value that was put. What somebody else wrote since stays. A key that was there
// before is overwritten, as with OpenYurt, and is not restored.
//
// Keys that say who a Node is, or that belong to Kubernetes' own controllers, are not taken from a NodePool: see
// refusal. Neither is what the API would refuse.
//
// A node must not write the record: by it, it could rid itself of a label or a taint that an administrator put. The
// policy weir-membership denies that. The policy weir-manager lets weir-manager change on a Node what is in the record
// and nothing else, and the policy weir-manager-pools lets into the record only what the NodePool of the Node says.
// That there is such a NodePool kube-apiserver itself writes beside the record (contract.PoolDescribed): else nothing
// comes into it.
//
// # Goroutines
//
// None. Reconcile is called for a Node by the controllers of package manager.
package attributes
