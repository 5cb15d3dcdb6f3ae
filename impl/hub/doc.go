// Package hub is weir-hub: the one door of an edge node to the Kubernetes API.
//
// Every local client speaks to the hub as it would to kube-apiserver. Reads of pool-scope resources (get, list, watch of
// exactly --pool-scope-resources) are answered by relays, list/watch caches with the cloud's own versions, that are fed from
// the pool's coordinator or from the cloud. Everything else is passed to the cloud as it came: any verb, streams,
// upgrades (exec, attach, port-forward), encodings.
//
//	TLS listener ─► front ─┬─► authorizer ─► relay ◄── feeder ◄── coordinator or cloud    (class pool)
//	                       ├─► proxy ──────────────────────────► cloud                    (class node)
//	                       └─► beats: the Lease of this node ──► cloud and coordinator    (class heartbeat)
//	                          │   └ recorded ─► store ─► reads while the cloud is away
//	                reviews, as the caller        ─────────────► cloud                    (class node)
//	                probes, reviews of this node ──────────────► cloud                    (class control)
//	pool ─► role.Machine ─► Leases in the coordinator; a leader also looks what arrived there (feed)
//	pool listener ─► poolDoor ─► the same relays, whole ◄── the coordinator, if this hub leads
//	     └► forwarding ─► heartbeats of nodes that are cut off ─► cloud                   (class heartbeat, as the forwarder)
//
// # Who is calling
//
// The hub ends TLS, so a client certificate cannot be passed on; tokens can.
//
//	caller shows                                     goes on to the cloud
//	a token                                          with the token, over connections without any certificate
//	a certificate of system:node:<this node>         with the hub's certificate for the same user
//	both                                             with the token alone: nothing is lent to who names another identity
//	any other certificate, also an unknown one       not at all: 401
//	nothing                                          not at all: 401; but for /healthz, /livez, /readyz and /version. With --anonymous
//	                                                 without credentials, and the cloud decides about system:anonymous
//
// The hub's certificate has one group more than the kubelet's, openyurt:yurthub, whose grants are to read the pool-scope
// resources; whoever holds the node's certificate has them through the hub.
//
// A certificate of this node that has expired counts on for --offline-token-allowance (24 h) while the cloud is away, since nobody can renew it then; it is
// refused as soon as the cloud is back, and nothing of such a request is ever sent there (package shelter). So it reads, registers, gets tokens that were
// issued before, and sends heartbeats, which a leader forwards as its own; statuses and Events are refused with 503. A kubelet with rotateCertificates does not show its certificate any
// more when that has expired, except on connections that it has: so a hub or a kubelet that restarts then finds no credentials. Only a longer life helps. The certificate
// for the hub may be by an authority of the node's own (--client-ca-file), as the cloud never sees it.
//
// Connections with and without the hub's certificate are never mixed, nor are their TLS sessions (a session resumes
// the identity it began with). Headers by which a front proxy tells who calls, and from where (X-Remote-*, X-Forwarded-*, X-Real-Ip), are dropped; impersonation
// is the cloud's to judge. The plain HTTP port knows no certificates. A request whose Connection header names anything but close, keep-alive, upgrade, te and
// http2-settings, or whose line names no path, is answered 400: the cloud could get another request than the one that came.
//
// A token that the cloud answers 401 is answered so here for 10 s, whatever it is used for: kube-apiserver ends the connection with each 401. At once all that was
// remembered of it counts no more, and its open watches of relays end. They also end when the store sees the pod go to which the token is bound. A
// ServiceAccount that is deleted, and rights that are taken away, are found out when the token is used with the cloud next: at the latest when the watch ends.
// (A 401 from behind kube-apiserver, by a server of another group or through services/proxy, says nothing of a token that was good.)
//
// # Who may have how much
//
// All but this node pass a gate. It bounds requests under way and new requests to the cloud, by caller and in sum, so that no pod can take the uplink, the
// memory or the connections of others; docs/limits.md is the table. A caller is known once the cloud has taken its token. When the cloud has refused a token
// lately, unknown ones are first asked about over connections of their own (see prover), as kube-apiserver ends the HTTP/2 connection that carries a bad one.
// Heartbeats, probes and requests of this node are never behind others.
//
// # Who may read
//
// Each read from a relay is authorized by the cloud, with the credentials of the request itself, which authenticates and
// authorizes in one round trip. Who may watch is asked by the very watch, which is left as soon as it begins (100 bytes);
// who may get or list, by a SelfSubjectAccessReview (500 bytes). Allowances count 5 minutes, denials 30 seconds: one review
// for each token and question in that time. If a review fails beside a cloud that is there, the answer is 503. In place of a 503 a watch that goes on at a
// version is told 429, after which client-go tries again and does not list. A selector of more than 8 KiB is the cloud's to answer. Without
// the cloud a valid verdict still counts; then package identity tells who is calling, by the cluster's own keys, and what the cloud decided for
// that caller last: denied is denied, an allowance counts for --offline-access (7 days), and what nobody decided is 503. It never fails open.
// Decisions are kept on disk, as hashes of who asked and of what was asked.
//
// # What is kept
//
// With Config.DataDir the relays are kept on disk (package snapshot), and so are the cloud's decisions: a hub that restarts while the cloud is
// away serves on. The header contract.AgeHeader of each read tells how old the state is, wherever this hub has it from.
//
// With Config.Offline what passes the proxy is kept as well, and answers reads while the cloud is away (packages store and offline). The
// cloud is away when each of its servers was judged and none is healthy. A read that cannot connect before anybody has judged the cloud is answered so too, and so is one that waits for an answer
// when the cloud is judged to be away, or for a connection for 200 ms after a start. Watches without the cloud end when it is back.
// Who may read is told by package identity; who may read a collection may also get what is in it.
//
// What the node's own certificate reads of its own Node and its own pods is node-scope in this, also if pods and nodes are in pool scope: it is passed and kept
// (relayed.Target.OfNode). Others read relays, which show what the cloud has, without what waits here.
//
// Statuses and Events that this node writes meanwhile, with a certificate that is valid, are kept for the cloud, on disk; any other write is refused (package writes). When the
// cloud is back, heartbeats pass at once, the rest over --return-spread: first what waits of statuses; then clients, who are served as
// before until then. If the hub's own certificate has expired meanwhile, nothing of it is lost: it waits until the files are replaced.
//
// A hub that lost its disk while the cloud is away reads what the pool has, at the coordinator, and knows its age. But it does not know
// whom the cloud has allowed to read that: its callers get 503, with a reason, until the cloud can be asked. This goes for the node itself as
// well: that its certificate was once good for a read is not known either. A coordinator that lost its disk asks the hubs what they hold: they tell it where they show that (see mirror.announce).
//
// # What a component sees
//
// With --filters some components of the node see another address of the hub, fewer Services or only near endpoints (package filter). Answers are altered on
// the way out to one client, whoever gave them; nothing that is kept or relayed is.
//
// # A restored cloud
//
// Whoever feeds its relays from the cloud finds out that it was restored from a backup (package source), says so in its log at level
// error, in its status and in the metrics weir_relay_history and weir_relay_histories_total, and lists once for the pool. All others follow over the pool's
// network: their relays end the watches of clients with 410, and those list at their own hub. The uplink carries one list,
// whatever the number of clients. A hub that comes back with a disk of before is told by the coordinator.
//
// # A leader that lies
//
// Whoever leads may lie to its pool. A hub that follows and reaches the cloud compares: about every 40 s the metadata of one object for each
// resource of which something changed (see doubt). A contradiction that is still there 10 s later is told, with the leader's node, and counted in
// weir_hub_pool_contradictions_total. Then the pool's cache is left as if it were not fresh, until another node leads or the cloud contradicts no
// longer. An object whose content alone was forged, under the version that the cloud gave it, is not found out so, nor one that is withheld.
//
// # Heartbeats
//
// A request for the Lease of this node by its kubelet is a heartbeat. It is passed to the cloud, to one server after another (see urgent), and mirrored in the coordinator.
// If it does not get through, the hub answers it itself and annotates the mirrored Lease; package heartbeat decides, and says why. What
// passes goes byte for byte, but when it carries the annotation or would not grow: then it is decoded and written anew, once, without fields that this build does not know.
// Requests about the Lease with a token, an impersonation or a compressed body are no heartbeats and go through the proxy.
//
// All hubs watch delegated Leases in the coordinator; the one that leads forwards them, with a certificate of its own, since NodeRestriction lets no node touch
// the Lease of another. A forward is a PATCH of some 90 bytes whose answer, the Lease, tells the version for the next.
//
// # The cloud
//
// One kube-apiserver is used as long as it is healthy; a request that cannot connect goes to the next. Health is judged by
// answers to GET /readyz on a connection of its own. A healthy server from which anything came within the last interval,
// over a connection on which it had proved its name, is not probed, but for each thirtieth interval, the sixth if it feeds
// the relays: it may live and not be ready. On class node HTTP/2 pings see to that, 78 bytes each. A server error calls for a probe; a server that failed one
// is judged by probes alone. After a start the first answer to anybody decides, and the hub probes only if none came within an
// interval, or soon if the pool needs a leader. Spare servers are not asked.
//
// The four classes of traffic have connections of their own, one each and per identity: dials wait for each other, since
// a second handshake is dearer than anything that could be won by it. Class pool has one more for watches that are left early, with little under
// way. Bulk delays no probe: there is none on class pool.
//
// # What a relay cannot do
//
// Reads with unset resourceVersion are not linearizable: they are answered at the version reached. But three things hold for them.
//
// A hub's clients read their own writes. After a write of a relayed resource through this hub, a read there shows it, whatever the write's answer told:
// the object, a deletion, a conflict, a subresource, or nothing, because the answer was lost (see Consistency.Observe). Where only the cloud knows what came
// of a write, it is asked for the metadata of that object, once. Side effects of a write on other resources are not waited for.
//
// While the cloud is there, nothing is shown that is older than --max-stale-read (30 s). What is older, or comes from a disk, is compared with the version that
// the cloud says it is at. It is asked once for all clients, and at most each 30 s as long as the relay is behind: never by a list.
// The default is three times the 10 s in which a healthy pool shows a sign of a quiet resource, so a healthy pool never asks; and less than the 50 s after
// which Kubernetes itself calls a silent node dead, so what Services lead to is not older than Kubernetes makes it.
//
// A client that has shown a version later than the relay's is not shown an earlier one afterwards.
//
// For each of these a read waits up to 3 s for the relay. Then the cloud itself answers a get, and one list of a resource at a time. Other lists, and watches,
// get 504 with Retry-After: the link is needed for the relay. While the cloud is away, reads are answered as old as they are, and contract.AgeHeader
// tells. A read with contract.ConsistentHeader is the cloud's alone to answer.
//
// # What answers cost
//
// HTTP/2 frames of large answers are encrypted and sent in batches of 64 KiB while the next are made (see batchHTTP2). What goes
// alone, a small answer or one watch event, is written as it comes. A connection has buffers only while a batch is under way.
//
// # Goroutines
//
// New starts none; it reads credentials, takes the data directory and the ports, so that what a user got wrong is known at once. Run starts
// all, ends them when its context does, and waits for them: the pool is left first (a leader gives back its Lease), then
// the servers drain for a moment and cut off what still runs.
package hub
