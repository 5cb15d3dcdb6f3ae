// Package holding is the report of a hub to weir-manager about its trust bundle and its certificates: which bundle the
// hub holds, and when each certificate begins and expires. The report is the annotation contract.HoldsAnnotation of the
// Node.
//
// A Teller writes it as the node, which kube-apiserver lets write its own Node and no other. So nothing is granted for
// it. weir-manager goes on with a rotation when all have heard, and tells a person of certificates that end. Nothing
// else follows from what a node says here: one that lies harms itself, or lets a rotation go on before all others have
// heard, who then follow the chain of bundles.
//
// # Goroutines
//
// None. Teller.Run runs in its caller's.
package holding
