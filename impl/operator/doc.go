// Package operator is the command line for operators of a cluster with Weir: `weir`, or `kubectl weir`. `weir
// pool`, `weir status`, `weir connectivity`, `weir logs`, `weir exec`, `weir port-forward` and `weir sysdump` are here.
// Each of its folders is another command, or a few related ones. Results go to standard output, everything else to
// standard error.
//
// # weir status
//
// It shows the pools of a cluster, their nodes, and which node is heard through which, on one page. It tells what the
// cloud knows. How old relays are, and what went over the uplink, hubs tell about once an hour (package digest);
// weir-manager keeps it in the status of the Pool. What nobody has told is a dash: former releases tell less, and a
// NodePool without a Pool has nowhere to keep it.
//
// # weir pool suggest
//
// It tells what a pool should share and does not, and what it shares and nobody reads. Hubs tell which resources their
// clients read of the whole cluster, and the cloud answers one by one. What the hub of a node says is taken for what it
// is: one that lies changes what is suggested, a person decides, and nothing is shared by itself. Nobody is advised to
// share what may be secret (digest.Private), whatever hubs tell.
//
// # weir connectivity
//
// It shows, for each kind of way that nodes of a pool use, whether it works, as their hubs found it, and each way that
// fails with its port, direction and likely cause.
//
// Nothing is tried from where the command runs: what works there need not work at a site. Ways of a node that cannot
// tell are unknown, which is not green. The form of -o json is stable: fields are added, and neither renamed nor taken
// away.
//
// # weir logs, weir exec and weir port-forward
//
// They do what kubectl does by these names, over weir-gate. They are for clusters whose kube-apiserver does not reach
// edge nodes, and for no other.
//
// The pod is read at kube-apiserver, and so is where the gate is: the annotations of the Endpoints of the pool's
// leader. The gate is then called with the credentials of the kubeconfig, and verified by the authority of that
// annotation. Nothing of the kubeconfig that is about its server is used for the gate: no authority, no server name,
// no proxy.
//
// Commands and ports go over websockets, and over SPDY where the kubelet does not take these.
//
// # weir sysdump
//
// It collects, in one archive, what a person needs who is asked for help. No Secret is read, and no key. What is read
// is gone through for what looks like one all the same: tokens, keys in PEM, passwords in URLs, values of environment
// variables. Each file and the archive are bounded. What could not be read stands in errors.txt.
//
// The package starts one goroutine: an exec with a terminal has one that looks for its size. It ends with the command.
package operator
