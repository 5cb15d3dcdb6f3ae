// Package operator is the command line for operators of a cluster with Weir: `weir`, or `kubectl weir`. The
// commands of `weir pool` and `weir sysdump` are here; each of its folders is another command, or a few related ones.
// Results go to standard output, everything else to standard error.
//
// # weir sysdump
//
// It collects, in one archive, what a person needs who is asked for help. No Secret is read, and no key. What is read
// is gone through for what looks like one all the same: tokens, keys in PEM, passwords in URLs, values of environment
// variables. Each file and the archive are bounded. What could not be read stands in errors.txt.
//
// The package starts no goroutine.
package operator
