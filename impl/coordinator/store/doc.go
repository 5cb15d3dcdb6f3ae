// Package store is the coordinator's durable memory: a single-member etcd inside the process, in a directory that one
// process at a time may use.
//
// It holds what is decided in the pool (Leases), never copies of what the cloud holds: etcd cannot keep foreign
// resourceVersions. It listens on unix sockets inside its directory only, so nothing of it is reachable over the
// network, nor by other users of the machine.
//
// A new etcd draws an incarnation, a random name that lives and dies with its data. Terms of leaders carry it: after a
// lost disk the versions of Leases begin again, and only the incarnation tells an old leader from a new one.
//
// Its database has a quota. When half of that is used Tend throws the history away, and at the quota, where etcd takes
// no writes, it makes room and has it take them again.
//
// Lock takes the directory; Open starts etcd and its goroutines, Close ends them all. What etcd cannot survive, a full
// or broken disk above all, makes it end; Failed tells, and the process should end too.
package store
