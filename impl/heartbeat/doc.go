// Package heartbeat decides about the heartbeats of nodes that lose the cloud but not their pool. Node decides for the
// hub of such a node, and Forwarder decides for the leader of the pool, which forwards heartbeats of other nodes. The
// package is pure: no I/O, no goroutine, no clock. Time is a duration since the start of the process, by the local
// monotonic clock. Package beat steps it. Cover decides what the hub of a node that is not cut off leaves to the roll
// call of its pool, which is here, too.
//
//	kubelet ──renews──► hub ──► cloud: kube-node-lease/<node>, as it came, never annotated
//	                     └────► coordinator: the same Lease, annotated while the cloud cannot be reached
//	                                 └─watch─► leader ──► cloud: renewTime grows, annotated
//
// # What a heartbeat is
//
// The kubelet's renewal, as it passes through the hub of its node, is the only sign of life there is; a hub makes up
// none. So a dead kubelet is not kept alive by its hub: when renewals end, all else does. In the coordinator a
// heartbeat is a change of renewTime, timed by the clock of anyone who sees it (stock Kubernetes goes by growth:
// nodelifecycle, tryUpdateNodeHealth). No time of one machine is held against a time of another. What is written to the
// cloud always grows (Later): a clock that was set back costs nothing, whether the node itself writes or the leader.
//
// The Lease of a node that cannot reach the cloud carries the annotation, and a label of the same name, in the
// coordinator, so that hubs can watch just those. The hub mirrors a heartbeat once it knows whether the cloud took it:
// each one that it did not take, and of the others the first and then one in Quiet; without the cloud it answers the
// kubelet itself, so that this never waits in vain for long.
//
// # Who sees
//
// All hubs watch delegated Leases, not the leader only, which costs nothing while there are none. The next leader has
// then seen heartbeats itself, and goes on with those that are younger than Life. A hub that has just started has seen
// none; what it finds may be of a node that is dead, so it waits for a change. After a watch broke, what changed
// meanwhile counts if the Lease was looked at within Life.
//
// # A late forward never annotates a node that has returned
//
// Two rules make that certain, by order of events and without any clock:
//
//  1. A node that said in the coordinator that it is cut off withdraws that there, and has the coordinator's word for
//     it, before it passes a heartbeat to the cloud again. Its writes there are conditional on the version, so an older
//     one that is still under way cannot undo it.
//  2. A forward is conditional on a version of the cloud's Lease. Either the Lease at that version is annotated: then
//     the node has written nothing since. Or the leader, after it read that version, has read in the coordinator, from
//     no cache, that the node is cut off.
//
// Suppose a forward annotates what a returned node wrote, version R. The leader read R, so R was written; before that
// the node had withdrawn its statement, by 1; after reading R the leader asked the coordinator, by 2, and would have
// heard so, unless the node was cut off again. A forward that was under way when the node wrote fails by its condition.
// The version ahead of a forward is mostly that of the forward before: one small PATCH per heartbeat, no read.
//
// A node that reaches the cloud and not its coordinator cannot take anything back. It passes its heartbeats all the
// same; a leader that forwards its last statement at that moment may annotate it once. The next heartbeat, at most
// Interval later, clears that: what a hub passes to the cloud is always stripped of the annotation.
//
// # The roll call
//
// It is one small object by which all nodes of a pool are renewed in the cloud, instead of one heartbeat of each.
//
//	kubelet ──renews──► hub ──Entry──► RollCall in the pool ──► leader ──Report──► Lease weir-heard-<pool> in the cloud
//	                     ▲                                                             │
//	                     └─────────Notice── RollCall ◄── leader ◄──Receipt (signed)── weir-manager ──► Leases of nodes
//
//	Chain     of a hub: links that only it can make, one for each period
//	Anchor    where a chain begins; the hub tells it in its own heartbeat, which nobody else can write
//	Report    which nodes were heard in the pool, each with its link
//	Account   of weir-manager: judges a report, and opens periods
//	Receipt   what weir-manager signs: the period that is open, and which nodes of a report it has renewed
//	Notice    a receipt and the roster that it is about, as hubs read it
//	RollCall  where hubs of a pool and its leader meet; package exchange shows it over HTTP
//	Caller    of a leader: what it reports, and when
//
// # What a leader cannot do
//
// A hub releases the link of a period when its kubelet renews, and not before. It knows a period from a signed receipt
// only. So a link says: the kubelet lived after that period was opened. A link cannot be computed from an earlier one.
// weir-manager takes each once, and only for RollLate after it has opened the period, by its own monotonic clock. A
// leader that replays a link gains nothing; one that keeps it back can show a dead node for RollLate after its last
// renewal, and no longer. A leader that drops entries is found by the hubs: no receipt says that they were renewed, so
// they renew themselves. It cannot change what a receipt says, nor for which roster.
//
// # Periods
//
// Numbers of periods only grow, over the life of weir-manager, too: see Account.next. There are three under way at a
// time. The receipt for report k comes with the answer to report k+1; links of the period that it opens come with
// report k+2.
//
// # Budget
//
// Stock Kubernetes declares a node Unknown when its Lease has not grown for 50 s (40 s before 1.32). The longest time
// without growth is this sum (Budget.Worst); it begins with the last heartbeat that the cloud took from the node
// itself:
//
//	                                                     no change of leader   killed or frozen, 6 s   Lease runs out, 17
//	                                                     s
//	until the next heartbeat of the kubelet (Slowest)    10.4 s                10.4 s                  10.4 s
//	the hub tries the cloud (Attempt)                     5                     5                       5
//	coordinator, watch                                    1                     1                       1
//	another leader                                        0                     6                      17
//	read, make sure, write: one cloud server              3 × 1                 3 × 1                   3 × 1
//	                        of three, the first is dead   3 × 2.5               3 × 2.5                 3 × 2.5
//	sum, one server                                      19.4 s                25.4 s                  36.4 s
//	sum, three servers                                   23.9 s                29.9 s                  40.9 s
//
// So a change of leader fits into 50 s with 9 s to spare in the worst case, and into 40 s as long as the leader's death
// is noticed by its pulse and not by the end of its Lease; for clusters before 1.32 with three cloud servers,
// --leader-elect-lease-duration=12s keeps the last case inside as well. A second heartbeat does not wait for Attempt:
// the hub knows by then. A new leader that has just started adds Slowest + Attempt, and so does a coordinator that
// restarts when a node has just been cut off: whoever looks again finds a Lease that was not delegated before, and does
// not know since when.
//
// # Budget of the roll call
//
// A covered node does not wait for anybody: its hub counts from the last heartbeat of which it knows by a receipt that
// the Lease has grown for it (Budget.Covered). Death, restart or partition of weir-manager, a change of leader and the
// loss of the coordinator are in this sum, also all at once:
//
//	since the heartbeat of the last receipt, until the hub passes the newest one (Lapse)        32 s
//	the coordinator does not answer when asked for a receipt once more (Withdraw)                1
//	connect and write: one cloud server; of three, the first is dead                             1; 2.5
//	sum                                                                                         34 s; 35.5 s
//
// That fits into 40 s. What it does not hold is a node whose own way to the cloud ends unnoticed while weir-manager is
// dead (Budget.CoveredAndCut). Then the hub tries for Attempt in vain, and the leader forwards. What was tried may be
// too old to be told by then, at most Slowest - Interval before the next heartbeat, which is told untried. The sum is
// 42.4 s with one server and 46.9 s with three: it fits into 50 s. A hub notices the loss of its way by probes, and
// then leaves nothing to the pool. In a quiet pool Lapse is hardly ever reached: a heartbeat waits at most 10 s for the
// report and 10 s for its receipt, for which the hub asks at Lapse once more.
package heartbeat
