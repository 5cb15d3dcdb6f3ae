// Package authz authorizes the requests that a coordinator serves. The rules are part of the program: a pool has no
// RBAC, and no caller is above the rules, not even system:masters.
//
// Callers are known by their client certificates. A certificate of this pool carries the group weir:pool:<pool> and one
// role:
//
//	role    certificate                                    may
//	hub     CN system:node:<node>, O openyurt:yurthub      read everything; feed relayed resources and put
//	                                                       documents, which the fence of feeds allows the leader
//	                                                       only; write the Leases kube-system/yurthub and
//	                                                       kube-system/leader-informer-sync, of which the coordinator
//	                                                       says
//	                                                       who may hold them, and its own kube-node-lease/<node>;
//	                                                       say whether the cloud contradicts the leader
//	                                                       (contract.DoubtPath); hand in what its kubelet says at the
//	                                                       roll call (contract.RollPath), whose leader collects it;
//	                                                       hand in and read what hubs say of moved pods
//	                                                       (contract.MovedPath), and what they have of images
//	                                                       (contract.ImagesPath); be called back
//	                                                       (contract.ReachPath);
//	                                                       bring what the authority of the pool has signed
//	                                                       (package bulletin)
//	replica CN weir:coordinator:<pool>:<name>,             read everything; ask to be taken in again when it has lost its
//	        O weir:coordinators                            data (contract.RejoinPath); bring what is signed
//	operator O weir:operators                              read everything; clear or delete the two Leases of kube-system
//	viewer  O weir:viewers                                 read everything
//	nobody  none                                           read /healthz, /livez, /readyz and /version
//
// Relayed resources are read-only for everybody by what they are: a write gets 405 from the resource, not 403 from
// here, so that its caller does not go looking for a grant that cannot exist.
//
// The rules are pure: no state that changes. Callers is the listener in front of them. It closes connections to the
// API: those of too many unknown callers, and those with a certificate that was revoked. The package starts no
// goroutine.
package authz
