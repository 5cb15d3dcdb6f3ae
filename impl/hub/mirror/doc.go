// Package mirror puts the mirror of registries (package images) into a hub: its flags, its port on loopback, what the
// pool port shows of the node's content, and its way to the pool.
//
// A port that is taken is told as what the hub lacks, and containerd pulls from registries as without Weir.
//
// # Goroutines
//
// Run blocks until its context ends, and ends what it started.
package mirror
