// Package images has weir images: which nodes of a pool have which image, and how an image gets there ahead of a
// roll-out. Package impl/images is the mirror that does the work on each node.
//
// Kubelets tell what their nodes have, in the status of their Nodes: that is in the cloud, so it costs the link
// nothing. A kubelet tells its 50 largest images, if it is not configured otherwise, some minutes after a change at the
// latest.
//
// The package starts no goroutine.
package images
