// Package node is weir node: it leads the kubelet of this machine to a hub, and back. The work is done by package
// install. And it revokes Nodes of the cluster that are lost or stolen, and restores those that were deleted by
// mistake: see package manager/revocation.
//
// It starts no goroutine.
package node
