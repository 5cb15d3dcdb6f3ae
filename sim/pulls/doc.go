// Package pulls runs scenarios in which the nodes of a pool pull an image, and counts what crosses the uplink for it.
//
// A scenario runs as two columns, one after the other on sites of their own. In the stock column each node's containerd
// asks the registry. In Weir's column it asks the node's hub first, by the same files (certs.d). Either way its own
// connections to the registry cross the uplink as class image, and share its rate with all others. The registry and
// containerd's resolver, fetchers and store are the real ones; no container is made of what was pulled. The part of the
// kubelet is here: it asks again when a pull has failed, after as long as a kubelet waits.
//
// Nodes have real kubelets, whose heartbeats have to reach the cloud in time all the while.
//
// A run owns all goroutines that it starts (pulls, faults, the watch of heartbeats) and ends them before it returns.
// The processes belong to the runtime.
package pulls
