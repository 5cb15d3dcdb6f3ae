// Package runtime brings the topology of a scenario to life. A Runtime makes a Site: a cloud, pools of nodes, the
// uplinks between them, and the parts of Weir, each of which can be started, stopped, killed, frozen and measured by
// name. The runner knows these interfaces only, so that one scenario file runs on every runtime.
//
// Local, the default, uses real processes and no container: a real kube-apiserver over embedded etcd (sim/cloud), real
// weir-hub and weir-coordinator processes at one loopback address per node (sim/parts), and links in this process
// (sim/link). Several runs side by side do not collide: addresses come from blocks that no other run holds.
//
// Kind uses containers: a kind cluster with a worker for each node, so kubelet, kube-proxy, CoreDNS and pods are the
// real ones; coordinators in containers too, links in this process (kind.go). Each run has a cluster and a network of
// its own, named by its id. Its files: kindcluster.go creates the cluster, kindhub.go lets nodes join their pools by
// `weir node join`, kinddoor.go walls every worker in and puts the link where the cloud is, kindsettle.go does all that
// in its order, kindpart.go is what faults do, kindkubelet.go what is done to kubelets, machines and timers, kindapp.go
// what pods run and who calls them.
//
// Clean-up: Site.Down ends everything; cancelling the context of Up ends what Up had started; and when this process is
// killed, the kernel and the janitor of sim/proc end the children and remove the files. A Docker engine does not die
// with this process: what Kind leaves in it then, kind.Clean removes.
//
// Goroutines: those of the packages above; Site.Down ends them.
package runtime
