// Package membership connects a hub to the decisions of package member: it passes to a member.Member what the hub
// observes, and carries out the effects that the Member returns.
//
//	coordinator, its Leases ─┐                              ┌─► requests to the coordinator
//	cloud ───────────────────┼─► observe ─► member.Step ─► do ─► feeders: where each relay is fed from
//	relays and feeders ──────┤                              └─► lead: what a leader does beside showing its relays
//	doubt ───────────────────┘
//
// All decisions are in package member, which has no I/O; here are goroutines, connections and clocks. One goroutine of
// Pool.Run owns the Member. New starts nothing. Pool.Run blocks until its context ends and the Lease was given back.
// Alone takes its place in a hub without a pool. A Member is made first, and whatever is made later may read what it
// decided and tell it something. An Account gathers the report of the hub about itself (package
// digest).
//
// # A pool without a coordinator
//
// Pool.Follow says who feeds the pool, and where that is asked. With leader hubs, the client of the coordinator asks
// one of them, and a leader shows what it holds. All else is as with a coordinator.
//
// # A move to another place
//
// A Course moves the hub to another coordinator, or to other leader hubs, while it runs, when the configuration of its
// pool names them. A move costs no client anything and nothing of the uplink: relays resume by version at the new
// place, which the hub that leads feeds from what it holds. So the leader goes first, after a moment in which the
// former coordinator can hear of the move from it. The others follow, spread, when somebody leads there. A former
// coordinator that still runs has then told the hubs that do not reach the cloud.
//
// A caller that could be met at the former place is still known for a while: what it reads of this hub ends in order,
// and not by a refusal. Course.Run blocks until its context ends.
//
// # Ways that fail
//
// A Prober tries the ways of the hub to others of its pool, when package connectivity says so, and knows those that
// fail: the hub tells them in its digest. Prober.Run blocks until its context ends. Attempts run in goroutines, which
// end before Run does.
//
// # A leader that lies
//
// A leader may lie to its pool. Hubs that follow and reach the cloud compare: about every 40 s, or every three minutes
// while little changes, one of those that read a coordinator, and each that reads a leader hub. It asks for the
// metadata of one object for each resource of which something changed (see doubt). A contradiction that is still there
// 10 s later is told, with the leader's node, and counted in weir_hub_pool_contradictions_total. Then the pool's cache
// is left within the spread, and all is listed again from the cloud: versions that fit would else let what was forged
// stay. The coordinator is told, asks the other hubs about the same object, and takes the Lease from a leader that lied
// (package lead there). The pool's cache is used again when another node leads, or when the cloud contradicts no
// longer. An object whose content alone was forged, under the version that the cloud gave it, is not found out so, nor
// one that is withheld.
//
// A leader hub that lies is told to nobody else: each hub that found it out lists from the cloud and leaves it alone
// for a while, as one that is not fresh.
package membership
