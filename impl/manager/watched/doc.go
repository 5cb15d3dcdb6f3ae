// Package watched holds single objects of a cluster, each by a watch of its own: an RBAC rule can name them, and a
// change or a deletion is known at once. A Reader answers Get as the cluster would, without a request.
//
// A watch lasts half an hour to an hour, so that many of them cost few requests. What kube-apiserver refuses, Get
// reports. While the cloud cannot be reached, what was read last is valid.
//
// Goroutines: Start starts those of one informer for each object, and ends them when its context does.
package watched
