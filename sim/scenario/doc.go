// Package scenario reads scenario files: one pool or several, their workload and clients, the faults that happen to
// them and what must hold in the end.
//
//	name: pool-cache                # the name of the file without .yaml; names the folder of the report
//	description: What it shows.     # optional; opens the report
//	seed: 20261005                  # decides all content and the order of changes
//	topology:
//	  pool:
//	    name: harbour               # nodes are harbour-1, harbour-2, …
//	    nodes: 5
//	    uplink: {rate: 8Mbit/s, rtt: 60ms}   # or up: and down: instead of rate:
//	    coordinators: 1             # optional; 0: hubs without a coordinator; 3: replicas
//	    leaderHubs: 2               # optional, with enrols; how many the pool's NodePool asks for, one by default
//	    reverse: false              # optional; nodes accept no connection: hubs connect to the coordinator that reads
//	                                # them
//	    lives: {hub: 20s, forwarder: 15s, coordinator: 20s}   # optional; hubs begin with the certificates of their nodes
//	                                                          # alone, ask for all others, and renew them; with
//	                                                          # coordinator, for those of the coordinators beside the
//	                                                          # first hubs too
//	    enrols: true                # optional, without lives: the same for the usual life, and weir-manager signs, and
//	                                # revokes. Where weir-manager
//	                                # runs, each pool is described by a NodePool
//	    noClock: [harbour-2, coordinator]   # optional; machines without a battery clock: what starts again there is in
//	                                        # 1970
//	    placed: true                # optional, with enrols; weir-manager runs the coordinator, as Pods on nodes of the
//	                                # pool
//	  pools: [{name: harbour, …}, {name: town, …}]        # instead of pool, which is short for a list of one
//	  controllers: true             # optional; the stock kube-controller-manager and kube-scheduler run, too
//	  joinEvery: 400ms              # optional; hubs start one after another, so far apart: a hundred that start together
//	                                # take longer on two processors than leases last
//	workload:
//	  services: 40
//	  endpoints: 100                # of each Service
//	  widgets: 1000                 # optional; objects of a custom resource, which the client widgets watches
//	  quiet: 30s                    # optional; without changes, before they begin
//	  changes: 200                  # of one endpoint each
//	  changesPerSecond: 10
//	  alone: 20                     # optional; changes of one object each, one a second, when all else was measured and
//	                                # delivered: bytes_per_change_alone
//	clients: [kube-proxy, coredns, json, kubectl]      # of each on every node
//	compare: [reference, stock]     # optional; the other ways that carry the same changes, both by default
//	faults:                         # optional; what happens to the pool, and is healed
//	  - {at: 5s, action: kill, target: leader, for: 2s, repeat: 10, every: 1s}
//	batches: allowed                # optional; see below
//	expectations:                   # each is a metric of package report, a comparison and a limit
//	  - pool_bytes_ratio <= 1.02
//	  - coordinator_rss_anon_bytes <= 64MB
//
// # Several pools
//
// Each pool has an uplink of its own, and beside it a stock pool of as many nodes and a reference, over equal links.
// All read the same workload. A fault says to which it happens (pool: town), but for one of the apiserver, which
// happens to all. Of several pools a metric is the sum if it counts or is bytes, and the longest, largest or worst if
// it is a time, a size or a share; ratios are of sums. What a fault costs is counted in all pools, so that one which is
// disturbed by the fault of another shows. The report has the bytes of each.
//
// # Faults
//
// A fault begins at a time since the changes began and is healed by the runner. Its fields depend on its action:
//
//	kill     leader, follower, hub/<n>, coordinator, apiserver,  SIGKILL, started again after for
//	         controller-manager
//	stop     the same                                            SIGTERM, started again after for
//	restart  the same, or each of hubs and coordinator in turn   SIGTERM, started again at once
//	freeze   as kill                                             SIGSTOP: its connections stay and say nothing
//	lie      leader                                              its key is used by another, who shows a slice that never
//	                                                             was
//	forge    leader, follower, hub/<n>                           its credentials ask for certificates that are not its
//	                                                             own
//	delete-node leader, follower, hub/<n>                        its Node is deleted, its hub runs on; made again after
//	                                                             for
//	vanish   leader, follower, hub/<n>                           the machine loses power: nobody is told
//	cut      leader, follower, hub/<n>, pool                     link: cloud, coordinator or both; direction: both, up or
//	                                                             down
//	flap     as cut                                              that many cuts: within for, at times that the seed
//	                                                             decides
//	restore  apiserver                                           the cloud's etcd is as it was lost: before; started
//	                                                             after for
//	slow     pool                                                link:, with another rate: or rtt: for a while
//	reset_peer as cut                                            link:; connections are reset, timeout: after they were
//	                                                             opened
//	timeout  as cut                                              link:, direction:; what is said is lost; connections
//	                                                             are closed after timeout:, or with 0s when it is over
//	slicer   as cut                                              link:, direction:; bytes come in pieces of
//	                                                             average_size:, more or less by size_variation:, with
//	                                                             a pause of delay:
//	slow_close as cut                                            link:, direction:; a connection that ends closes after
//	                                                             delay:
//	limit_data as cut                                            link:, direction:; connections are closed after bytes:
//	blackout pool                                                the uplink is cut for a while, and all machines lose
//	                                                             power
//	change   pool, leader, follower, hub/<n>                     object: a NodePool, Pool or Node gets the content of
//	                                                             patch:
//	move     hub/<n>                                             to: another pool: the label of its Node, then the flags
//	                                                             of its hub, which starts again
//	remove   pool                                                object: a NodePool or Pool is deleted
//	place    coordinator                                         weir-manager is told to run it elsewhere; for placed:
//	                                                             true
//	power-off coordinator                                        its machine stands still, and starts again after for;
//	                                                             likewise
//	rotate-authority pool                                        weir-manager replaces the pool's authority, and is done
//	                                                             within for:; the pool has to enrol
//	storm    pool                                                all of it on top of each other: each begins within for,
//	                                                             as the seed decides
//
// From reset_peer to limit_data they are toxiproxy's, by its names. They add up, in the order in which they begin.
//
// In a blackout the machines have power again after off:, while the uplink is still cut. empty: names parts that find
// an empty disk then: hub/<n>, or coordinator for all of them. On nodes whose hub kept its disk clients are restarted,
// with the credentials that they had.
//
// A Node that is deleted leaves a thief with all that was on its disk. With off: the pool is without the cloud from
// before the deletion on, for so long, and the time begins at the first contact. The pool has to enrol.
//
// An object that says what a pool is (NodePool, Pool; Node, with the hub of a node as target) gets the content of a
// JSON merge patch, and the content of before again after for:. Service, Endpoints and EndpointSlice are
// leader-hub-<pool>: weir-manager has to put them right within for:. A change has to be taken up within for: by all
// hubs of the pool that hear the cloud, else the run fails. The pool has to enrol: weir-manager runs then.
//
//	{at: 5s, action: change, target: pool, object: Pool, patch: {spec: {mode: LeaderHubs}}, for: 30s}
//
// A pool with three coordinators has coordinator/1 to coordinator/3 as well; coordinator is then the one that the
// leader feeds.
//
// disk: keep or lose says what a process that ended finds when it starts again. With repeat: a fault happens several
// times; each waits until the one before is healed and at least half of all clients can be served, and every: longer.
//
// A kube-apiserver that restarts answers 410 to a watch that goes on. A relay then sends its clients the differences as
// one batch, which kube-apiserver would not; likewise after a break in which it missed more than it holds. The judge
// allows it if a fault ends the apiserver, or keeps a pool from its source for 10 s or longer, or as batches: says.
//
// A cloud that is restored uses versions a second time. Each stream may go back once, by a list that follows a 410;
// until then it is held against what was, afterwards against what is. Stock clients would wait in silence, so nothing
// is compared.
//
// # Eviction
//
// A scenario with eviction: is about nodes that are lost. Its pods are those of one Deployment, so it has no clients;
// it runs twice, as stock Kubernetes and with Weir, and states what stock Kubernetes evicts (sim/eviction):
//
//	topology:
//	  pool: {name: harbour, …}      # its nodes have real kubelets, and are a zone of their own
//	  beside: {name: town, nodes: 3} # a healthy pool of plain Kubernetes, in another zone
//	  zoneless: true                # optional; no node is labelled with a zone
//	eviction:
//	  timers: stock                 # or fast: two fifths of them all, in proportion
//	  podsPerNode: 2                # optional; one by default
//	  watch: 8m                     # from the first fault until a column is over
//	  policy: keep                  # optional; or: evict after 2m; what happens to pods when all of the pool is silent
//	  calls: true                   # optional; a client on each node calls the Service ten times a second
//	  settle: 10m                   # optional; how long nothing happens before what a quiet pool costs is measured
//	workload: …                     # optional; what Weir's caches hold besides; quiet: how long nothing happens before
//	                                # the first fault, beyond a Lease and a half
//
// Its faults are those that stock Kubernetes can be put through as well; what happens to a part of Weir happens in
// Weir's column only:
//
//	cut      hub/<n>, followers, pool                      of link: cloud; followers are all nodes but one, the leader's
//	                                                       if there is one
//	vanish   hub/<n>                                       with its kubelet and its containers
//	kill     kubelet/<n>, hub/<n>, leader, coordinator, apiserver
//	slow     pool
//	policy   pool                                          policy: another one, from then on
//	unready  apiserver                                     /readyz says 500, since its key service is down; it serves
//	                                                       everything
//
// # Autonomy
//
// A scenario with autonomy: is about nodes that live on without the cloud. They have real kubelets and pods of their
// own, so it has no clients and no workload; it runs twice, as stock Kubernetes that stays connected, whose kubelets
// restart in the same way, and with Weir (sim/autonomy):
//
//	autonomy:
//	  podsPerNode: 2                # optional; half of them run for ever, the others until they finish
//	  settle: 30s                   # optional; from the last heal until cloud and nodes must agree
//	  firstBoot: true               # optional; the pool comes up without the cloud; wants one coordinator
//	  services: 5                   # optional; Services of all pods, and clients on each node that follow and call them;
//	                                # stock nodes are then cut off as those with Weir are
//	  names: true                   # optional; clients call Services by their names, by way of CoreDNS, on the second
//	                                # and third node, and of the kube-proxy of their node
//	  addresses: other              # optional; what pods get when their machine starts again: same, other or swapped
//
// What happens to its nodes:
//
//	cut       hub/<n>, pool                        of link:
//	kill      hub/<n>, kubelet/<n>, coordinator
//	vanish    hub/<n>, pool                        the machine loses power, with its kubelet and its containers
//	fill-disk hub/<n>                              the hub can write no file for a while
//	exit      kubelet/<n>, pool                    containers end with an error, and are to be started again
//	finish    kubelet/<n>, pool                    containers of pods that run until they finish do so
//	delete    kubelet/<n>, pool                    the cloud deletes one pod of each node
//	attempt   kubelet/<n>                          all kinds of callers try to read at the node's hub
//	expire    pool                                 certificates of nodes and tokens of pods expire soon; healed by new
//	                                               certificates
//
// # Crowd
//
// A scenario with crowd: is about many pools at one control plane (sim/crowd). It counts what kube-apiserver has open,
// as stock Kubernetes and with Weir:
//
//	topology:
//	  pool: {name: farm, nodes: 20, …}   # the pools are farm-001, farm-002, …
//	crowd:
//	  pools: 100                    # all of them are there
//	  run: 2                        # nodes that run; the others are multiplied, and the result tells their share
//	  follow: 20                    # of how many pools those after the first run; default: of all
//	workload: {…, changes: 0}
//	clients: […]
//
// # Images
//
// A scenario with images: is about nodes that pull an image from a registry of the cloud (sim/pulls). They have real
// kubelets and a real containerd, so it has no clients and no workload. It runs twice, with nodes that pull straight,
// then with Weir:
//
//	images:
//	  layers: [25MB, 2MB]           # of the image, of random bytes
//	  pulls:                        # optional; all nodes at once, by default
//	    - {at: 0s, nodes: [1]}
//	    - {at: 1m, nodes: [2, 3]}
//	  within: 10m                   # optional; from the last of them until a node is given up
//	compare: []                     # optional; without the stock column
//
// What happens meanwhile:
//
//	kill      puller, hub/<n>, coordinator    puller is the node that has pulled most of the image, of those that have
//	                                          not all: its containerd is killed
//	vanish    puller, hub/<n>                 the machine loses power, with hub, containerd and kubelet
//	cut       puller, hub/<n>, pool           of link: cloud
//	slow      pool
//
// The reader is strict: a field that is unknown, there twice, of a wrong type, out of range or in contradiction to
// another is refused, and so is YAML that reads otherwise than it looks (anchors, aliases, several documents). It
// tells all mistakes of all files at once, each with file, line, field, value and what is allowed, as FileErrors; to
// cli.ExitCode they are wrong usage.
//
// Each action is a Kind, a type in a file of its own, which also aims, begins and heals it. What it is done to is a
// Lab, an interface. Each of eviction, autonomy, crowd and images is a Study, and so is Watching, without such a field.
//
// The package only reads files: it runs nothing and starts no goroutine. It knows no laboratory.
package scenario
