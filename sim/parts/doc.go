// Package parts runs the parts of Weir as real processes, each node at a loopback address of its own.
//
// It owns: finding or building weir-hub and weir-coordinator, their configuration files, and their processes (start and
// wait until healthy, stop, kill, freeze, read status, metrics and memory). It does not know clouds, links or
// scenarios; who starts a part hands it addresses and certificates.
//
// It starts no goroutine of its own; processes belong to the caller's proc.Spawner.
package parts
