// Package roll is the roll call of a pool: one small object by which all its nodes are renewed in the cloud, instead of
// one heartbeat of each. It is pure: no I/O, no goroutine, no clock.
//
//	kubelet ──renews──► hub ──Entry──► Desk (in the pool) ──► leader ──Report──► Lease weir-heard-<pool> in the cloud
//	                     ▲                                                            │
//	                     └──────────Notice── Desk ◄── leader ◄──Receipt (signed)── weir-manager ──► Leases of the nodes
//
//	Chain    of a hub: links that only it can make, one for each period
//	Anchor   where a chain begins; the hub tells it in its own heartbeat, which nobody else can write
//	Report   which nodes were heard in the pool, each with its link
//	Account  of weir-manager: judges a report, and opens periods
//	Receipt  what weir-manager signs: the period that is open, and which nodes of a report it has renewed
//	Notice   a receipt and the roster that it is about, as hubs read it
//	Desk     where hubs of a pool and its leader meet
//	Caller   of a leader: what it reports, and when
//
// # What a leader cannot do
//
// A hub releases the link of a period when its kubelet renews, and not before. It knows a period from a signed receipt
// only. So a link says: the kubelet lived after that period was opened. A link cannot be computed from an earlier one.
// weir-manager takes each once, and only for Late after it has opened the period, by its own monotonic clock. A leader
// that replays a link gains nothing; one that keeps it back can show a dead node for Late after its last renewal, and
// no longer. A leader that drops entries is found by the hubs: no receipt says that they were renewed, so they renew
// themselves. It cannot change what a receipt says, nor for which roster.
//
// # Periods
//
// Numbers of periods only grow, over the life of weir-manager, too: see next. There are three under way at a time. The
// receipt for report k comes with the answer to report k+1; links of the period that it opens come with report k+2.
package roll
