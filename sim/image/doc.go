// Package image makes container images for the testbed, each from a seed.
//
// The bytes of its layers are random, so that nothing on the way can make them fewer, and the same seed gives the same
// digests. An image is an index of two platforms with the same layers: each machine has one of them, and no machine has
// both. It is written as an OCI archive, for the registry of .ci/release/registry.
//
// The package starts no goroutine and runs nothing.
package image
