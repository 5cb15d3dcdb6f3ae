// Package operator is the command line for operators of a cluster with Weir: `weir`, or `kubectl weir`. `weir
// pool`, `weir status` and `weir sysdump` are here; each of its folders is another command, or a few related ones.
// Results go to standard output, everything else to standard error.
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
// # weir sysdump
//
// It collects, in one archive, what a person needs who is asked for help. No Secret is read, and no key. What is read
// is gone through for what looks like one all the same: tokens, keys in PEM, passwords in URLs, values of environment
// variables. Each file and the archive are bounded. What could not be read stands in errors.txt.
//
// The package starts no goroutine.
package operator
