// Package peer runs a hub that is not Weir's, so that bench can put the same load through it.
//
// A profile, a small YAML file, says how: which program with which flags and files, where it serves the Kubernetes API
// of a node, where it tells that it is healthy, and how long it may take. The values that differ from node to node
// stand in the profile as placeholders, see Machine. The package owns the reading of profiles, which is strict and
// bounded, and the processes of the peer, one for each node. It knows no load and no figure.
//
// It starts no goroutine of its own; processes belong to the caller's proc.Spawner.
package peer
