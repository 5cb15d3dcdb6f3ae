// Package tenants treats the pods of a node when its hub is added or removed. It acts as the node at the cloud.
//
// A container has the address of the API in its environment from its start to its end. So when a hub goes, pods that
// call it have to restart. They are known: the hub keeps a list (package callers). A pod that its controller would
// start again is deleted, as its own grace period has it. A pod of a Job is not, since it would lose what it has done;
// nor is one without a controller, or a static one. Such a pod holds its node.
//
// kube-proxy starts again when the hub comes, too: what leads it is in a volume, and its watches go on.
//
// It starts no goroutine.
package tenants
