// Package sockets tells which processes of this machine are connected to an address by TCP, in all network namespaces,
// so in those of pods, too.
//
// It reads /proc, and nothing else: net/tcp and net/tcp6 of one process of each namespace have the sockets, fd of each
// process has whose they are. Who is not root sees its own processes only, which is an error. Processes that end
// meanwhile are left out. A process that not even this root may look at has no name here.
//
// It starts no goroutine.
package sockets
