// Package node is the command `weir node`. It directs the kubelet of this machine to a hub, and back (package install).
// It also revokes Nodes of the cluster that are lost or stolen, and restores Nodes that were deleted by mistake
// (package manager/revocation).
//
// It starts no goroutine.
package node
