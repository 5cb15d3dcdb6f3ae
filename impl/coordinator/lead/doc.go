// Package lead is about the hub that leads a pool, for its coordinator: which hub may hold the election Lease
// (Election), whether the one that does has lied (Jury), and reading its relays (Puller).
//
// # Pulling
//
// A Puller fills the relays of a coordinator. A coordinator reads from the hub that leads the pool. A replica that
// the leader does not use reads from the replica that the leader does use. While no hub leads, a coordinator reads from
// the hub with the latest state (type fallback). Replicas never read in a circle, where old data would look fresh: all
// of them read the one that last claimed to read the leader, and that one reads no other replica.
//
// A leader that dies leaves its Lease behind, and others would have to wait for that to expire, many seconds, because
// each renewal is a write to flash. The connection to it is no write: it breaks at once when the leader's process dies,
// and pings go unanswered when the machine does. Then the Lease is taken from the leader. Should it live all the same,
// nothing is lost: it may stand again, though not at once.
//
// Status is what a coordinator says of itself, as JSON, and whether it is ready.
//
// It knows no API server and no etcd: Leases and Replicas are interfaces, so that a coordinator in memory pulls as the
// real one does. Puller.Run starts all goroutines and ends them.
//
// # The election
//
// Election decides which hub may hold a Lease of the pool, and tells the fence which hub holds the election Lease.
//
// Election is the part of a coordinator that knows the rules. Where Leases are kept is a LeaseStore's matter: etcd
// behind k8s.io/apiserver, or memory (package inmemory). It starts no goroutine; Election.Run blocks until its context
// ends. A driver without goroutines shows it each write by Wrote and Follow instead.
//
// # The jury
//
// Jury decides, in a coordinator, whether the leader of the pool serves objects that the cloud never had. It compares
// what the other hubs of the pool read from the cloud.
//
// A coordinator does not reach the cloud, so it cannot know. A hub that follows and reaches the cloud can: it compares
// what the pool's cache brings with the cloud. If the cloud contradicts twice, the hub says so (contract.DoubtPath),
// and names the object. That opens a case. The coordinator shows the case in its status. Each other hub that follows
// and reaches the cloud looks at the same object, and says whether the cloud contradicts there too. The leader's own
// word is ignored.
//
//	two hubs confirm, none denies        the leader lied, at once
//	after JuryPatience, more confirm     the leader lied. One hub is enough if no other one can tell
//	than deny
//	else                                 the leader stays
//
// # A leader that lied
//
// It loses the election Lease. Its node is marked: it may take the Lease again only if nobody has wanted it for
// Deference, and its word is no longer valid. The mark lasts ten minutes, and twice as long each time, up to a day.
// What the coordinator holds may be forged, and a next leader was fed from it. So the coordinator asks for a later
// history of the cloud (Floor): the next leader lists again from the cloud, and coordinator and hubs throw away what
// they hold. That is one list of each resource over the uplink.
//
// # A follower that lies
//
// It cannot depose a leader while another follower reaches the cloud and denies. Where none does, one lie costs an
// honest leader its Lease, and the liar its voice: who confirmed alone, or was not borne out by the others, is not
// heard for ten minutes, and twice as long each time, up to a day. So one liar removes at most one leader at a time.
// The deposed one leads again after Deference if nobody else stands, so that a pool is not without a leader for longer
// than the heartbeats of its nodes allow. Two liars in one pool can do it against one honest follower.
//
// # Why it is kept
//
// A follower that is cut off from the cloud cannot check its leader: kube-apiserver signs no objects. Without a jury a
// leader that forges EndpointSlices sends the traffic of the pool elsewhere until somebody removes it by hand, although
// other followers see in the cloud what it forges. With the jury this ends within two minutes (attacks 58 and 60).
// --leaders-only, which restricts who may lead, bounds that. A signature of the pool's authority protects what
// weir-manager writes. Neither speaks of objects of the cloud. A pool of leader hubs has no jury: there an
// administrator named the leaders, each follower keeps its own doubt, and there is no election to lose. The price is
// the jury and one note in etcd. While nobody doubts, nothing is sent and nothing is written.
//
// # State of the jury
//
// All that is decided is one note in etcd (JuryState), written on condition of the one before, so that replicas decide
// together and a restart forgets nothing. Times are counted by each process from when it first saw an entry: no clocks
// are compared. After a start they begin again. JuryState is pure. Jury owns the note: Jury.Run follows it and blocks
// until its context ends; NewJury starts nothing.
package lead
