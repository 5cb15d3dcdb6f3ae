// Package bubble runs real hubs in fake time, under testing/synctest: links, cloud and coordinator are in memory, TLS
// and HTTP/2 are real.
//
//	go test ./sim/bubble -run TestPool -hubs 50 -seed 42 -v
//
// A bubble has its own time, which moves when everybody in it waits, but no fixed schedule: for a seed it promises the
// same verdict. What must replay exactly runs in package virtual. Nothing of a bubble may wait for anything outside, so
// there is no real socket and no etcd: a Network carries the connections, a Cloud is a relay that is written to, and
// the coordinator is that of package inmemory.
package bubble
