// Package crowd runs scenarios with many pools at one control plane, and measures their load on kube-apiserver:
// watches, by its own metric of long-running requests, and connections, by the uplinks of the pools.
//
// Two columns run one after the other on sites of their own, so that nothing else is counted: the clients of stock
// nodes, then Weir. All pools are there, with real processes. Of each pool some nodes run: first one, which leads, then
// the others, which follow. What the others cost more is what a node costs that does not run. The result tells which
// share of all nodes was multiplied so.
//
// What a kubelet watches for itself is in neither column: it is the same with and without Weir.
//
// A run owns all goroutines that it starts and ends them before it returns; the processes belong to the runtime.
package crowd
