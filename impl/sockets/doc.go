// Package sockets finds the processes of this machine that are connected to an address by TCP. It looks into all
// network namespaces, so it also finds the processes of pods.
//
// It reads /proc, and nothing else: net/tcp and net/tcp6 of one process of each namespace have the sockets, fd of each
// process has whose they are. A process without root sees its own processes only, which is an error. Processes that end
// meanwhile are left out. A process that not even this root may look at has no name here.
//
// It starts no goroutine.
package sockets
