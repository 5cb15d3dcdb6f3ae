// Package operator is the command line for operators of a cluster with Weir: `weir`, or `kubectl weir`. The
// commands of `weir pool` are here; each of its folders is another command, or a few related ones. Results go to
// standard output, everything else to standard error.
//
// It starts no goroutine.
package operator
