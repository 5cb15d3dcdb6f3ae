// Package autonomy runs scenarios in which nodes live on without the cloud, and judges whether they did.
//
// A scenario runs as two columns, one after the other on sites of their own. In the stock column kubelets talk to the
// cloud through the pool's link, which stays whole, and are restarted as the scenario says: that is what Weir is
// compared with. In Weir's column they talk to their hub, and the link is cut as the scenario says. Both have real
// kubelets over a container runtime that is a table (sim/controlplane/hollow-node); pods are bound to their nodes by
// the testbed, so no controller plays a part.
//
// Each node has two kinds of pods, which read a Secret and a ConfigMap of their own as they start: apps, which run for
// ever, and jobs, which run until they finish. What the machines say of their containers is the truth; what the cloud
// says of the pods in the end must be that.
//
// With Services, clients on each node are held against what the machines say (sim/routes), and the stock column is cut
// off, too. With names two pods are CoreDNS, and callers go by what the kube-proxy of their node says.
//
// Goroutines (the watch of the cloud, faults, attempts to read) end before Run returns; the processes belong to the
// runtime.
package autonomy
