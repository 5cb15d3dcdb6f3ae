// Package operator is the command line for operators of a cluster with Weir: `weir`, or `kubectl weir`. Each of its
// folders is a command, or a few related commands. Results go to standard output, everything else to standard error.
//
// It starts no goroutine.
package operator
