// Package coordinator is weir-coordinator: the small Kubernetes API of a pool.
//
// It is k8s.io/apiserver's generic server over an embedded etcd (package store) for what is decided in the pool, Leases, and
// relays (package relay) for what is copied from the cloud: list/watch caches that keep the cloud's resourceVersions, served
// read-only over the native REST paths. kubectl and client-go work against it. Callers are known by client certificate, and
// package authz says what they may.
//
// # Leases of the pool
//
// Who may hold the election Lease and leader-informer-sync is decided here, by the certificate of the caller and by this coordinator's
// monotonic clock; what hubs say of each other counts for nothing. A holder is "<node of the certificate>_…". A hub takes the election
// Lease if it is free, its own, or if the coordinator has seen no write of it for its duration (package fence, Tenure). It may give
// it back, and asks for contract.MaxLeaseDuration at most. leader-informer-sync is written by the holder of the election Lease only. No
// hub deletes a Lease or puts finalizers, owners, labels or annotations on it that are not of its node. An operator may clear or delete
// both. After a start, and at each of several replicas, the time of a Lease begins anew.
//
// # Feeds
//
// The leader's hub pushes each relay as one streamed POST (contract.FeedPath). The answer comes at once, with the version
// that the relay has reached; then the body is applied as it comes, at the pace at which it can be: HTTP/2 holds the sender
// back. A feed is fenced by its term, (incarnation of this etcd, resourceVersion of the election Lease at acquisition):
//
//   - the incarnation is ours;
//   - the election Lease is held by the node of the caller's certificate, at the start and before each change;
//   - the version is that of a write of this Lease: not ahead of it, and not below the term that is known to have begun last,
//     be it by an accepted feed or because the Lease was seen to change hands.
//
// One feed per resource at a time: a newer one, or one of the same term (the hub reconnected), ends the older one and starts
// when that has ended.
//
// The highest term is not written down. After a restart it is unknown, but the holder is not: the Lease is in etcd, and only
// the node that holds it may feed. What could slip in is an earlier process of that same node, until the present one
// feeds. It can do no harm that outlasts this: versions are the cloud's, a relay drops events at or below the version it
// has reached and refuses a list that is older.
//
// # The cloud's history
//
// A feed names the history of the cloud that it is of, and the answer that of the relay (rest.HistoryHeader). A later one
// comes as a list that may be at a lower version: the relay throws away what it holds, hubs that watch it get one 410, and list from
// here. One of an earlier history is not applied: the coordinator need not know who is right, because the leader, which reads the
// number in the answer, asks the cloud. One that cannot be the next, because nobody can have missed so many restores, is refused, so that
// a leader that lies cannot use the numbers up; an honest one goes on from the number in the answer. A feed, a batch or an offer of more
// bytes than --relay-max-bytes is refused. Fencing is as ever: a leader of before, of whatever history, has no term. The number is kept
// with the relay on the disk; with an old disk, or none, the next feed brings it. Leases are the pool's own and not concerned.
//
// A feed breaks off when the leader's relay takes up another history, and begins anew: a leader that dies in between leaves either
// all of a history here or nothing of it, and the next leader goes on from there, or finds out by itself.
//
// # Offers
//
// While no hub reaches the cloud nobody leads. A hub that holds a newer state than a relay here, which is not ready and which no leader
// feeds, may then offer it: the same POST, with contract.OfferHeader in place of a term. It moves the relay forward only, in the history
// that the relay is in. If the hub still has the changes since what the relay has reached (contract.ReachedHeader), these are what it sends: after a
// loss of power clients and hubs have seen a part of them, and go on from there. It is served with its age, makes nothing ready, and is told with the name of its node. So a coordinator that lost
// its disk has the last state that any hub holds. A leader's feed ends an offer that comes, and follows one that came. As a leader may, a
// hub that lies can so lie to its pool, but only while the cloud is away: afterwards the leader's list, or the change of history that it
// shows, puts it right.
//
// # Pulse
//
// Beside its feeds a leader keeps one POST open (contract.PulsePath) on which it sends a byte every contract.PulsePeriod. If
// that breaks and does not come back at once, or is silent for contract.PulseSilence, the coordinator takes the
// election Lease from it, and hubs that watch the Lease stand for it without waiting for it to expire. So it does, if it is the only one,
// when the holder of the Lease that its disk held sends no pulse within twice that time of its start.
//
// # Replicas
//
// A coordinator may be three processes whose etcds are one cluster. Elections and Leases are written at any of them, and each
// fence follows the Lease. The leader feeds one; that one claims so, by a write to etcd that no claim of an earlier term can
// replace, and the two others pull their relays from it as any client would. A claim elsewhere ends what is pushed here. The claims
// are in one order, and whoever claimed last pulls from nobody, so that old news never goes round in a circle.
//
// A replica that is cut off from both others is not healthy: hubs leave it. A feed that it still has goes on until the leader
// leaves it, or has to step down because it cannot renew its Lease; it carries the cloud's versions, so it harms nobody.
//
// # Healthy and Ready
//
// /healthz and /livez tell whether it serves: whether Leases can be read and written. /readyz has one check more for each
// relay: synced, and shown to be fresh by its feed within Config.FreshWithin. A relay that is not fresh is still served; its
// age is told in the header contract.AgeHeader. Relays are kept on disk (package snapshot): after a restart they are served as they
// were, with their age, and are not ready until they are fed again. One that was never synced answers 503.
// What age a relay tells comes from the cloud, however long the way: see relay.Testimony.
//
// # Goroutines
//
// New starts none; it takes the data directory, the certificates and the port, so that what a user got wrong is known at
// once. Run starts all, ends them all when its context does, and gives the rest back; Close does only that, if Run is never
// called.
package coordinator
