// Package runtime brings the topology of a scenario to life. A Runtime makes a Site: a cloud, pools of nodes, the
// uplinks between them, and the parts of Weir, each of which can be started, stopped, killed, frozen and measured by
// name. The runner knows these interfaces only, so that one scenario file runs on every runtime.
//
// Local, the default, uses real processes and no container: a real kube-apiserver over embedded etcd (sim/cloud), real
// weir-hub and weir-coordinator processes at one loopback address per node (sim/node), and links in this process
// (sim/link). Several runs side by side do not collide: addresses come from blocks that no other run holds.
//
// Clean-up: Site.Down ends everything; cancelling the context of Up ends what Up had started; and when this process is
// killed, the kernel and the janitor of sim/proc end the children and remove the files.
//
// Goroutines: those of the packages above; Site.Down ends them.
package runtime
