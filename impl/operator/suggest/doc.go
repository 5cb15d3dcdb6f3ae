// Package suggest tells what a pool should share and does not, and what it shares and nobody reads.
//
// Hubs tell which resources their clients read of the whole cluster, and the cloud answers one by one (package digest);
// weir-manager keeps it in the status of the Pool. What the hub of a node says is taken for what it is: one that lies
// changes what is suggested, a person decides, and nothing is shared by itself. Nobody is advised to share what may be
// secret (digest.Private), whatever hubs tell.
//
// It reads nothing, and starts no goroutine.
package suggest
