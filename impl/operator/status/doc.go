// Package status is the command `weir status`. It shows the pools of a cluster, their nodes, and which node is heard
// through which, on one page.
//
// It tells what the cloud knows. How old relays are, and what went over the uplink, hubs tell about once an hour
// (package digest); weir-manager keeps it in the status of the Pool. What nobody has told is a dash: former releases
// tell less, and a NodePool without a Pool has nowhere to keep it.
//
// # What a pool should share
//
// Suggest tells what a pool should share and does not, and what it shares and nobody reads. Hubs tell which resources
// their clients read of the whole cluster, and the cloud answers one by one. What the hub of a node says is taken for
// what it is: one that lies changes what is suggested, a person decides, and nothing is shared by itself. Nobody is
// advised to share what may be secret (digest.Private), whatever hubs tell.
//
// The package starts no goroutine.
package status
