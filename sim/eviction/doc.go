// Package eviction runs scenarios in which nodes are lost, and judges which nodes lost their pods.
//
// A scenario runs as two columns, one after the other on sites of their own: stock Kubernetes, whose kubelets talk to
// the cloud through the pool's link, then Weir, whose kubelets talk to their hub. Both have the same pools, pods,
// faults and timers, real kubelets (sim/controlplane/hollow-node), and the stock, unmodified kube-controller-manager
// and kube-scheduler. What stock Kubernetes survives proves nothing, so a scenario states what the stock column must
// have evicted.
//
// A column ends some time after its first fault, whether all faults are healed then or not. What was done and what the
// cloud showed meanwhile is a History: which nodes were dead, which were cut off, when pods were deleted, when nodes
// were not Ready, when heartbeats arrived. Judge makes the figures of it and is pure: no clock, no I/O.
//
// A column owns its goroutines (recorders, callers, faults, and one that starts a controller again that ended, as a
// kubelet does with a static pod) and ends them before it returns; the processes belong to the runtime.
package eviction
