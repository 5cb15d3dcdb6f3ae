// Package role decides the role of a hub in its pool (Leader, Follower or Pending) and the source of its relays.
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
// they are not. A hub gives the Lease back when it loses the cloud, when its feed is refused and when it stops. A
// leader to which nothing comes from the cloud any more gives it back before probes have proved the loss. One whose
// streams, or whose feed, fail for half of SyncDuration (Input.Unable) makes way for a hub that may do better, and
// leaves the Lease to others for some seconds. Each time that this was in vain it waits four times as long, so that the
// Lease does not go round where nobody can. A hub that takes a Lease that became free has to have heard from the cloud
// since (Input.Unproven), and one to which the cloud gives nothing that the pool shares leaves it alone: it has just
// joined, say, and is not yet a user with rights. In a power cut a hub ends without giving the Lease back. Once it is
// there again it takes that Lease at once (Config.Former), if the pool's cache is not ready. Its identity is another
// one, and so its term is.
//
// # Readiness and source
//
// The pool's cache is Ready while the Lease leader-informer-sync exists and was seen to change within its duration. A
// Lease found at the start counts only once it changed, or if the coordinator's own status says that it is ready.
// Leaders are fed from the cloud; others from the coordinator while it is Ready. When it is not any more, a hub stays
// with it and with what its relays hold for Config.Grace, counted from when the cloud could feed them instead; then it
// goes to the cloud, at a random time within Config.Spread, and comes back, once the coordinator is Ready, within a
// tenth of that. While the cloud is away, a coordinator that is healthy but stale is read. A hub that starts with a
// state on disk behaves as one that has just lost the coordinator; one without waits a bounded time (Config.Wait)
// before it opens streams to the cloud, so that hubs that start together do not all list there, and while another hub
// leads for as long as one that has lost the coordinator.
//
// That is the way of the pool's resources in common. Detours (detour.go) lead single ones beside it: what the
// coordinator does not have, or is not given by the leader, is fed from the cloud, and takes nothing from the others.
//
// A pool's cache that the cloud contradicts (Input.Doubted) counts as not fresh for the choice of the source, however
// much it moves, and is left without Grace.
//
// # Leaders that are named
//
// In a pool without a coordinator there are no Leases (Input.Designated). A hub that is named a leader hub leads while
// it hears the cloud. Without the cloud it reads another leader hub if that hears it (Input.Shown), and else waits for
// the cloud: two that read each other would take old news for fresh. All others read a leader hub, under the rules
// above: one that answers is to them what a leader is that holds the Lease, and one that is fresh makes the pool's
// cache Ready. When a pool goes from one way to the other, what was asked of the coordinator before counts for nothing.
//
// # A Lease that is taken, or gone
//
// The coordinator may take the Lease from a holder whose feed broke and did not come back. Such a holder may believe to
// lead until it hears of it; its term is then older than the next one, and its feed is refused. A Lease that is gone
// altogether, with the coordinator's disk, is left to the hub that led for RetryPeriod, because its streams from the
// cloud are open.
package role
