// Package commands makes the command lines of weir and kubectl-weir, with cobra: names, flags, help, completion by
// shells and the manual page. A program is a list of commands; a command is a function that declares its flags and
// returns what runs. Wrong usage is a cli.UsageError, so exit code 2.
//
// A View has the objects of a cluster that commands for operators show, read once for each command: Kubernetes' own
// objects and those of weir-manager. What cannot be read is no error of Cluster.Read: View.Failed says why, by kind.
//
// The package starts no goroutine. No program that runs on a node may import it: the hub takes its flags from package
// cli alone.
package commands
