// Package install puts weir-hub on a node whose kubelet has already joined a cluster, and removes it again. The
// commands `weir node join`, `leave` and `status` use it.
//
// # Join
//
//	preflight    the kubelet's kubeconfig and certificate, systemd, ports, time, disk, the cloud, the node's pool:
//	             nothing is changed before all is well
//	files        the hub, its configuration and its unit, and a new kubeconfig for the kubelet, which leads to the hub
//	start        the hub is started, and has to answer the kubelet's own credential
//	trial        a drop-in in /run leads the kubelet to the hub; it is restarted, and has to renew the Lease of its
//	             Node through the hub
//	keep         the same drop-in in /etc
//	kube-proxy   its pods restart: the kubelet, which reads through the hub now, tells them of it
//
// Other pods are not touched. The hub's unit gives the machine the address contract.PodsAddress, and containers that
// start when their pods trust the hub are told it (package hub/nodelocal).
//
// The kubelet's own kubeconfig is read, and never written. What fails undoes everything, and says why: in the error, in
// an Event and in the condition contract.JoinedCondition of the Node.
//
// # What the machine says
//
// Where the cloud is, who signs for it, through what proxy it is called and by what the node is one there stands in the
// kubelet's kubeconfig, its files and its unit. The hub reads the kubeconfig itself and follows it; nothing of it is
// copied. The environment of the unit is, and another Join brings it up to date.
//
// Join makes each kubelet a certificate that only its hub takes. A kubelet shows it when its own has ended, or when the
// cloud has given it none but a token, or a program that prints one: then the hub shows that to the cloud (package
// credential).
//
// # Power
//
// At each moment a node that starts again has an API server. A drop-in in /run is gone after a restart of the machine,
// so a trial that was cut short leaves the kubelet as it was. The drop-in in /etc is written when the hub has proved
// itself, and it goes before anything else does.
//
// A journal says that something was begun: it is written before the first change, and goes with the last one. What it
// says to be unfinished is finished by the next call: Join goes on with a join and first ends a leave, Leave undoes
// what there is of either. All steps may be done again.
//
// # Another hub
//
// Join of a node that has joined, with another weir-hub, is an upgrade: it runs beside the former one's program, by a
// drop-in in /run, and counts when the kubelet was heard through it. Else the former one is started again. The hub
// keeps the flags that a person chose, and gets those that its machine says.
//
// # Leave
//
// Files, folders, units and addresses are as they were before Join, byte by byte. Pods of kube-proxy that were started
// meanwhile call the hub, and so do those on its list of callers: they are deleted when the kubelet calls the cloud
// again, and the hub stays until they are gone. What nobody would restart (a pod without a controller, of a Job, a
// static one) keeps a node from leaving; Config.Abandon gives it up. A pod that has the hub's address and has never
// called is left alone, and named.
//
// It starts no goroutine. Two calls at once are refused by a lock on the folder of the journal.
package install
