// Package desk is where a hub has its pool call it back: a hub alone cannot know whether others reach its port. See
// package connectivity. A coordinator has a desk, and so has each leader hub. It is in memory. It starts no goroutine:
// a call ends with the request that asked for it.
//
//	POST  by a hub: an Ask; the answer is an Answer
//
// # What is believed
//
// The caller is known by its certificate, and its hub has to answer at its address. A hub says itself where that is, as
// it does in the Lease of a leader, so it may have the desk open a connection to an address that other machines reach,
// too: one at a time, and one each Rest. It is told how far that came, in one word.
//
// A desk also tells a few members that asked lately, those that follow the caller by name: so each hub is tried by
// others, and none by all.
package desk
