// Package process is what a process of Weir does for itself, whichever program it runs.
//
//	BootID            which boot of the machine it is
//	Collector         the metric weir_build_info: which program a process runs, in which version
//	Lacks             lets a hub run on when its files are damaged or missing
//	Headroom          keeps the garbage of the process small in proportion to its live heap
//	Member            the metric weir_member_info: the node and the pool of a process
//	Pause             waits by a clock that tests can replace
//	Sockets           listening sockets that systemd keeps over a restart of the service, on Linux
//	Tell, ServeReady  report the state of a service of Type=notify to systemd; without systemd that is no error
//
// # Lacks
//
// Without a hub its node has no API, even while the cloud is there. So in the place of a folder that cannot be written
// stands one in memory, with what small files the folder holds. Nothing of the folder itself is changed. Lacks names
// what is lacking; the hub's status, its metrics and its log show it. When the cause of a lack is gone the hub ends,
// and anyone who started it restarts it: parts that run would otherwise have to change what is below them. Lacks.Run
// starts no goroutine, and ends with its context.
//
// # Garbage
//
// Go's collector lets the heap grow to twice what lives (GOGC=100). For a relay, which holds tens of megabytes of bytes
// without pointers, that is the dearest way: such bytes cost nothing to mark, so collecting more often is nearly free,
// and the machine has a gigabyte. Headroom keeps the distance between what lives and where the next collection starts
// at a share of what lives, but never so small that an idle process collects all the time.
//
// Headroom.Keep blocks in its caller's goroutine and starts none; the runtime calls a cleanup of its own after each
// collection, which only sends on a channel. It is a property of the whole process: one Keep per process.
package process
