// Package command is the command line of weir: which subcommands there are, what they take, and where they print.
// The work is done by sim/runner and sim/report. Results go to standard output, everything else to standard error.
// It starts no goroutine.
package command
