// Package pools maintains NodePools and Pools: their status, the leader hubs of a pool, and the objects
// leader-hub-<pool>, from which hubs learn the configuration of their pool.
//
// # Who belongs to a pool
//
// The Nodes with the label contract.NodePoolLabel. Nodes cannot write it: see the policy weir-membership. A pool
// without a NodePool is left alone: nothing is told to its hubs.
//
// # Leader hubs
//
// A pool that asks for leaders (enableLeaderElection, and interConnectivity, since others have to reach them) gets
// leaderReplicas of them. Any Node may lead that is Ready, is not cut off or about to be deleted, has an internal
// address and, with the strategy mark, has the labels. A hub that leads stays while it may. The next hub is decided by
// a hash of the pool and of the node: nothing is random, so two managers agree, and yet pools differ.
//
// A pool of which no node is heard is cut off, most likely. Its leaders stay as they were: its hubs go on with them,
// and the cloud cannot know better. Package verdict says who is heard, before the node lifecycle controller calls one
// node after the other lost.
//
// # leader-hub-<pool>
//
// It is in contract.ManagerNamespace: a headless Service without a selector, Endpoints, and one EndpointSlice for each
// family of addresses, all of this name (the slice of the second family ends in the family's name). Endpoints without a
// Service would be deleted by kube-controller-manager, and its mirroring of Endpoints is told to leave these alone.
// Annotations tell interConnectivity and poolScopeMetadata, so a hub watches this one small object and no NodePool,
// whose status changes with each node. If there is a Pool, they also tell the mode and where the coordinator is. Hubs
// are sent to leaders only if the NodePool asks for some.
//
// What may not be shared is left out of the annotation: Secrets, and a resource in a second version. Weir's CRD refuses
// these at once, OpenYurt's does not. The condition ScopeAccepted says so. A resource that the cloud does not serve is
// told all the same: it may come. What no leader would dial is left out of what the cloud may reach in the pool, and
// the condition ReachAccepted says so.
//
// What somebody edits or deletes is put right. The objects are owned by the NodePool, and go with it. An object of the
// name that is not Weir's is not touched: the condition LeaderHubSynced says so.
//
// # Beside OpenYurt
//
// If yurt-manager runs (its Lease in the same namespace is renewed), it keeps NodePools, and this package does nothing
// until it is gone. A CRD that OpenYurt installed serves as well as Weir's. It drops the fields of the status that are
// Weir's own: they stand in the Pool then, and are not written again. Without any CRD this package waits for one.
//
// # What a status cannot know
//
// The cloud knows who is heard, and when a pool fell silent. It does not know who leads in the mode Coordinator, which
// the pool decides, nor how old a relay is: the hubs' own metrics tell that.
//
// # Attributes of a NodePool
//
// An AttributeKeeper copies the labels, annotations and taints of a NodePool to the Nodes of its pool. It removes them
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
// # What hubs report
//
// A Ledger keeps, by node, the reports that hubs send about themselves (package digest).
//
// It comes with heartbeats, by the watch of Leases that weir-manager has anyway, and stands there for seconds. So every
// replica notes it when it comes, and the one that leads writes it into the status of the Pool, from which a replica
// that starts reads it again. A time is that of the replica that noted it.
//
// A node tells what it likes: it is bounded, shown, and decides nothing. Only nodes that there are, and that are in a
// pool, have metrics.
//
// # Goroutines
//
// Add starts none. What it adds runs while the manager leads, and ends with its context. So does one for each change of
// the image of the release, which asks for the pools that have it.
package pools
