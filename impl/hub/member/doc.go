// Package member is a hub's part in its pool: whether it leads, follows or waits, who feeds its relays, and what it owes the others.
//
//	coordinator ─► probes, Leases ─┐
//	cloud ─► proof, silence ───────┼─► role.Machine ─┬─► requests ─► Leases of the pool
//	relays ─► holding ─────────────┤                 ├─► aim: who feeds each relay
//	what arrived there ─► feed ────┘                 └─► feed: what a leader does
//	                      doubt: whether the leader lies    shared: which resources both sides have
//
// One goroutine of Pool.Run owns the machine and all that is "of the loop". New starts nothing; Pool.Run blocks until its context ends and the Lease was given
// back. Alone takes its place in a hub without a pool.
package member
