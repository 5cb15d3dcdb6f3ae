// Package node is weir node: it leads the kubelet of this machine to a hub, and back. The work is done by package install.
//
// It starts no goroutine.
package node
