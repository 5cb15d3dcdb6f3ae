// Package role decides what a hub is to its pool: Leader, Follower or Pending, and where its relays are fed from.
//
// A Machine is pure. It is stepped with what the hub observed (is the coordinator healthy, is the cloud, what the two
// Leases of the pool said, are its own streams fresh, what time is it) and returns one immutable Snapshot, the Actions
// due and the time of the next step. It does no I/O, starts no goroutine and reads no clock; time is a duration since
// the start of the process on the local monotonic clock. So tests run it in virtual time, and its transitions can be
// read in testdata.
//
//	coordinator  cloud      holds the election Lease   role
//	unhealthy    any        any                        Pending   works against the cloud alone
//	healthy      unhealthy  gives it back              Follower  reads the pool's cache, never leads
//	healthy      healthy    no                         Follower  stands for election
//	healthy      healthy    yes                        Leader    feeds the coordinator
//
// # Election
//
// The election Lease is a lock with optimistic concurrency, written as client-go's leader election writes it. A Lease
// held by another is free once no change of it was seen for its duration on this machine's own monotonic clock; clocks
// of two machines are never compared. A leader stops believing in itself RenewDeadline after it sent the last renewal
// that succeeded, which is before anybody else may take the Lease. Each acquisition gives a new term, (incarnation of
// the coordinator's etcd, Lease version), by which the coordinator refuses feeds of leaders that do not know yet that
// they are not. A hub gives the Lease back when it loses the cloud, when its feed is refused and when it stops.
//
// # Readiness and source
//
// The pool's cache is Ready while the Lease leader-informer-sync exists and was seen to change within its duration.
// A Lease found at the start counts only once it changed, or if the coordinator's own status says that it is ready.
// Leaders are fed from the cloud; others from the coordinator while it is Ready, else from the cloud, else, when the
// cloud is away too, from a coordinator that is healthy but stale. A hub that starts waits a bounded time for a Ready
// coordinator before it opens streams to the cloud, so that hubs that start together do not all list there.
package role
