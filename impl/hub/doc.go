// Package hub is weir-hub: the one door of an edge node to the Kubernetes API.
//
// Every local client speaks to the hub as it would to kube-apiserver. Reads of pool-scope resources (get, list, watch
// of exactly --pool-scope-resources) are answered by relays, list/watch caches with the cloud's own versions, that are
// fed from the pool's coordinator or from the cloud. Everything else is passed to the cloud as it came: any verb,
// streams, upgrades (exec, attach, port-forward), encodings.
//
// The hub is cut into rooms, each a package of its own. This one checks the configuration and puts them together, of
// two things that come first: the hub's member of its pool, which decides (membership.Member), and what the machine
// has, ports, disk and clock (machine.go). build in run.go is the map. Each part is made of those before it and calls
// none behind it: what is made later follows what was made earlier.
//
//	clients ─────────► door ─┬─► access ─► relayed ─► relay ◄── feeder ◄── coordinator or cloud    (class pool)
//	                           ├─► beat: the Lease of this node ──────────► cloud and coordinator    (class heartbeat)
//	                           ├─► shelter: the store, while the cloud is away
//	                           └─► Proxy ─────────────────────────────────► uplink: the cloud        (class node)
//	                     reviews, as the caller ──────────────────────────► cloud                    (class node)
//	                     probes, reviews of this node ────────────────────► cloud                    (class control)
//	pool port ─► pooldoor ─► the same relays, whole ◄── the coordinator, if this hub leads;
//	                                                    other hubs, if it is a leader hub
//	member ─► role.Machine ─► Leases in the coordinator; who feeds the relays; beat.Forwarding of a leader
//
//	answer       what a hub says itself           nodelocal    leads the pods of the node to the hub
//	coordinator  the client of the pool's         membership   what a hub tells of itself, its moves
//	             coordinator                      togate       reads at weir-gate, and keeps the way in
//	pooldoor     the port for the pool, and what a hub holds in common with it
//	ownwatch     watches of the node's own pods and Node, which outlive their clients
//	overlay      what kubelets of the pool say of moved pods, while the cloud is away
//
// # Certificates
//
// What is given as files is read again when the files change. A hub asks weir-manager for its certificate in the pool,
// as its node or by a bootstrap token, keeps it in <data-dir>/pki and renews it (package credential). It asks for that
// of a forwarder while it leads, and keeps it in memory only. Until it is in the pool it works as a hub without one. A
// new certificate is for new connections: streams go on where they are.
//
// At the cloud a hub is two users. As its node, by the certificate of --cloud-client-cert-file, it sends on what the
// kubelet asks, and asks for its certificates. All that it reads for itself and for its pool it reads as
// weir:hub:<pool>:<node>. That certificate it asks for as well. While it has none, and after its end, it reads as its
// node: what the node may not read is not relayed then, and such requests are the cloud's to answer. The log, the
// status and weir_hub_own_user say who it is.
//
// The hub's own certificate, for pods and kubelet of its node, comes from an authority that it makes itself (package
// nodelocal), unless --etc-dir has another. The kubelet trusts that authority by a file in --etc-dir, and pods by
// the kube-root-ca.crt that the kubelet reads through the hub (package filter). When they do, containers that start are
// told to call the hub at --pods-address (package nodelocal), and the hub keeps a list of the pods whose tokens the
// cloud takes: they have to restart when the hub is taken away.
//
// With --enrol-coordinator-dir the hub asks for the certificates of the pool's coordinator on its node as well, which
// has no way to the cloud, and keeps them there for the coordinator to read. Hub and coordinator run as the same user:
// nobody else can read these files.
//
// While the cloud is away nobody renews a certificate. One of the pool counts for 90 days after its end, at the pool
// port and when this hub asks the coordinator, while this hub itself cannot reach the cloud (pki.Allowance): to read,
// which is all that there is. A connection that came about so goes on when the cloud is back. All hubs then ask for
// successors by themselves. weir_late_certificates_total counts.
//
// Certificates of nodes that were deleted are on the pool's denylist (package trust). Each hub watches it in the
// cloud, gives it to the coordinator and takes it from there, and keeps it in <data-dir>/denylist. A node on it does
// not come in at the pool port, and its open connections there end; so does a connection to such a coordinator.
//
// # What the pool is told
//
// Flags say where the coordinator is and what the pool shares, until the cloud tells by leader-hub-<pool> (package
// directory): the hub watches that one object as its own user, keeps it in <data-dir>/directory, asks the coordinator
// for it while it does not reach the cloud, and shows it to the coordinator at the pool port.
//
// # What a component sees
//
// With --filters some components of the node see another address of the hub, fewer Services or only near endpoints
// (package filter). Answers are altered on the way out to one client, whoever gave them; nothing that is kept or
// relayed is.
//
// # A restored cloud
//
// A hub that reads the cloud finds out that it was restored from a backup (package source), says so in its log at level
// error, in its status and in the metrics weir_relay_history and weir_relay_histories_total, and lists once for the
// pool. All others follow over the pool's network: their relays end the watches of clients with 410, and those list at
// their own hub. The uplink carries one list, whatever the number of clients. A hub that comes back with a disk of
// before is told by the coordinator.
//
// # Goroutines
//
// New starts none; it reads credentials, takes the data directory and the ports, so that what a user got wrong is known
// at once. Run starts all, ends them when its context does, and waits for them: the pool is left first (a leader gives
// back its Lease), then the servers drain for a moment and cut off what still runs.
package hub
