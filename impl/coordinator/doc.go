// Package coordinator is weir-coordinator: the small Kubernetes API of a pool.
//
// It is k8s.io/apiserver's generic server over an embedded etcd (package store) for what is decided in the pool,
// Leases, and relays (package relay) for what is copied from the cloud: list/watch caches that keep the cloud's
// resourceVersions, served read-only over the native REST paths. kubectl and client-go work against it. Callers are
// known by client certificate, and package authz says what they may.
//
// # Leases of the pool
//
// Who may hold the election Lease and leader-informer-sync is decided here (package lead), by the certificate of
// the caller and by this coordinator's monotonic clock; what hubs say of each other counts for nothing. A holder is
// "<node of the certificate>_…". A hub takes the election Lease if it is free, its own, or if the coordinator has seen
// no write of it for its duration (member.Tenure). It may give it back, and asks for contract.MaxLeaseDuration
// at most. leader-informer-sync is written by the holder of the election Lease only. No hub deletes a Lease or puts
// finalizers, owners, labels or annotations on it that are not of its node. An operator may clear or delete both. After
// a start, and at each of several replicas, the time of a Lease begins again.
//
// # The leader
//
// The coordinator pulls its relays (package source) from the hub of the node that holds the election Lease, and from
// nobody else. The hub told its address with the Lease (contract.PoolAddress), and has to prove by its certificate that
// it is of that node. Nothing else that a hub says is believed: the coordinator keeps the Lease, so it knows who leads,
// since when, and when that ends. From that moment on nothing of the former leader is applied, whatever is on its way
// (member.Fence); the next one is read from the version reached.
//
// One connection carries all that is read, and is the leader's pulse: it breaks at once when the leader's process dies,
// and pings go unanswered when the machine does. If it does not come back at once, or if the hub cannot be reached
// within contract.PulseSilence, twice that after a start, the coordinator takes the election Lease from it, and hubs
// that watch the Lease stand for it without waiting for it to expire. A hub that could not be reached leaves the Lease
// to others for a while. One that lied to its pool does for long: see package lead. With --leaders-only only hubs
// lead whose certificate has the organization contract.LeaderGroup.
//
// # The cloud's history
//
// A relay follows the leader's into a later history of the cloud, which is listed and may be at a lower version: it
// throws away what it holds, hubs that watch it get one 410, and list from here. An earlier one is waited for: the
// leader reads the number in the coordinator's status, and asks the cloud. One that cannot be the next, because nobody
// can have missed so many restores, is not taken up, so that a leader that lies cannot use the numbers up; an honest
// one goes on from the number in the status. More bytes than --relay-max-bytes are refused. The number is kept with the
// relay on the disk; with an old disk, or none, the next leader brings it. Leases are the pool's own and not concerned.
//
// # While nobody leads
//
// While no hub reaches the cloud nobody leads. The coordinator then asks the hubs that told an address in their nodes'
// Leases what they hold, and pulls from the one that holds most (package lead). That moves a relay forward only, in the
// history that it is in. If the hub still has the changes since what the relay has reached, these are what comes: after
// a loss of power clients and hubs have seen a part of them, and go on from there. It is served with its age, makes
// nothing ready, and is told with the name of its node. So a coordinator that lost its disk has the last state that any
// hub holds. The hub that leads takes its place. As a leader may, a hub that lies can so lie to its pool, but only
// while the cloud is away: afterwards the leader's list, or the change of history that it shows, puts it right.
//
// # Replicas
//
// A coordinator may be three processes whose etcds are one cluster. Elections and Leases are written at any of them,
// and each fence follows the Lease. One reads the leader: that at which the leader writes its Lease, which claims so by
// a write to etcd. The two others pull their relays from it as any client would. The claims are in one order, and
// anyone who claimed last pulls from no replica, so that old news never goes round in a circle. It alone takes the
// Lease from a leader that it cannot read.
//
// A replica that is cut off from both others is not healthy: hubs leave it. It sees no election and no claim, so it
// goes on where it was, until the leader has to step down because it cannot renew its Lease; what comes are the cloud's
// versions, so it harms nobody.
//
// # Who is not let in any more
//
// Hubs bring the pool's denylist (package trust), and replicas give it to each other; it is kept on disk. Whose
// certificate is on it is nobody: its requests get 401, its connections end with all that is open over them, and nobody
// connects to it. So a leader that is deleted is not read, and loses its Lease. A replica whose node is deleted is cut
// off from the etcds of the others (package store).
//
// # Its own certificates
//
// A coordinator has no way to the cloud. The hub of its node asks for its certificates, and renews them (the hub's
// --enrol-coordinator-dir); the coordinator reads them from files (--certificates-dir), and waits for them at its first
// start. Files are read again when they change: that of the API within a minute, those of replicas at each handshake.
// Streams that are open go on.
//
// # By which time, and after the end
//
// Certificates are judged by this machine's clock, but never by a time before the latest that an authority of the pool
// has vouched for: a certificate that it signed proves that it was its NotBefore once. That time is kept on disk, so a
// machine that starts in 1970 goes on from it (pki.Proven). What a hub says of the time is ignored. A hub that lies
// could end all certificates by a time far ahead; as it is, it can only withhold new ones.
//
// Nobody renews a certificate without the cloud. While no relay is fresh, which is the coordinator's sign of the cloud,
// those of hubs and replicas count for 90 days after their end (pki.Allowance). Their holders read, bring denylists and
// renew the Lease of their own node, so that the pool sees that it is there; they hold no Lease of the pool, and nobody
// reads them. The etcds of replicas go on by such certificates (peers.meet says why). When something is fresh again,
// they are nobody until they come with a successor. weir_late_certificates_total counts.
//
// # Healthy and Ready
//
// /healthz and /livez report whether it serves: whether Leases can be read and written. /readyz has one check more for
// each relay: synced, and shown to be fresh by its source within Config.FreshWithin. A relay that is not fresh is still
// served; its age is told in the header contract.AgeHeader. Relays are kept on disk (package snapshot): after a restart
// they are served as they were, with their age, and are not ready until they are fed again. One that was never synced
// answers 503. What age a relay tells comes from the cloud, however long the way: see relay.Testimony.
//
// # API discovery
//
// A Catalog adds the relayed resources to API discovery, beside those that the generic server lists. The generated file
// has the OpenAPI definitions of the objects that a coordinator stores: Leases, and the meta types of any Kubernetes
// API. Server-side apply and kubectl explain need them. Relayed resources need none, since they are read-only here.
//
// # Goroutines
//
// New starts none; it takes the data directory, the certificates and the port, so that what a user got wrong is known
// at once. Run starts all, ends them all when its context does, and gives the rest back; Close does only that, if Run
// is never called.
package coordinator

//go:generate go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260721132016-d427ff9ee9ad --output-dir . --output-pkg github.com/weir-edge/weir/impl/coordinator --output-file zz_generated.openapi.go --go-header-file openapi.txt --report-filename /dev/null k8s.io/api/coordination/v1 k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version
