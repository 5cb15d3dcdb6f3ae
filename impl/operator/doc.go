// Package operator is the command line of who runs a cluster with Weir: weir, or kubectl weir. Each of its folders is a
// command, or a few that belong together. Results go to standard output, everything else to standard error.
//
// It starts no goroutine.
package operator
