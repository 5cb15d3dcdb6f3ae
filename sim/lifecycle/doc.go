// Package lifecycle runs pools of nodes, weir-manager and the node controllers that it is given through random
// schedules of faults, in fake time, and judges which pods were evicted. Package stock, a module of its own because it
// needs k8s.io/kubernetes, runs it with the unmodified node lifecycle and taint eviction controllers of Kubernetes:
//
//	cd sim/lifecycle/stock && go test . -schedules 1000 -from 0     # new random schedules; prints the seed that fails
//	cd sim/lifecycle/stock && go test . -seed 42 -v                 # that one again, with all that happens
//
// # What is real
//
// weir-manager as a whole, with its caches and its client (package manager); what hubs do with heartbeats (package
// beat: Beats, Mirror, Forwarding, RollCall and Reporter); the controllers, with stock timers; client-go. All of them
// talk to an apiserver in memory (package api), which does what the admission policies of weir-manager say;
// sim/managertest checks that this is what the real kube-apiserver makes of them. Another such apiserver stands for the
// coordinator of each pool.
//
// Small models stand for the rest: kubelets that renew Leases and report their node and pods; probes of the cloud;
// links; an election that finds another leader some seconds after one is gone.
//
// # What happens
//
// Each schedule has one or two pools, each a zone of its own (or none has a zone), beside a healthy zone. A Schedule is
// a list of faults at times, drawn from a seed: a node is cut off from the cloud, from its pool, from both; loses
// power; its kubelet dies and its hub lives; its hub restarts; a leader is killed; a coordinator restarts, with or
// without its Leases; a whole pool is cut off; the cloud's apiserver is away; a clock is set a minute ahead or back;
// the controllers restart; one replica of the manager ends, or all are away; a pool's policy changes; a leader lies
// about who was heard. At the end some nodes stay dead, then all is healed.
//
// # What must hold
//
// The judge knows the truth: who lives, and which ways are open. It counts
//
//   - wrong evictions: a pod of a living node is deleted that can be heard, or whose whole pool cannot and which is to
//     be kept; or a pod is deleted earlier than stock Kubernetes would;
//   - missed evictions: a pod of a node that is dead, or cannot be heard while its peers can, is still there after the
//     time that stock Kubernetes needs, and a bit;
//   - unjust: Ready turns Unknown for a node that could be heard all the time;
//   - dead renewed: the Lease of a node grows that gave no sign of life for longer than heartbeat.RollLate;
//   - wrong marks: a pod of such a node, or of a pool to be kept, is marked as not ready;
//   - leftovers: after all is healed a node is not Ready, a pod is missing or not Ready, a taint or a listed node is
//     left.
//
// A bubble has fake time and no fixed order: for a seed it promises the same schedule and the same verdict, not the
// same run.
//
// # Goroutines
//
// Run starts those of the actors and ends them before it returns. It has to be called in a bubble.
package lifecycle
