// Package bounds says what one caller may write at a pool's coordinator, and how often. docs/limits.md has its
// constants.
//
// # Sizes
//
// A Lease is some hundred bytes, but for names: one of a node has 253 at most, and stands in a Lease up to four times.
// 4 KiB are twice the largest one that a hub writes. A request has 64 KiB at most, since a Lease as JSON may escape
// each byte by six. What is signed has bounds of its own, see packages denylist, trust and directory.
//
// # Writes
//
// A hub sends the heartbeat of its node every 10 s. The leader renews its two Leases about every 2 s each, and a hub
// that opens lines opens the next one when one is taken. What fails is tried again every 0.5 s. That is 3 writes a
// second at most for long, and some ten at once when something changes. WriteRate and WriteBurst are several times
// that, for settings that are quicker. One stolen node can so add WriteRate × MaxLease × 5 min, 24 MiB, to the history
// of etcd until Kubernetes compacts it: twenty of them fill half of its quota in that time, where the store compacts by
// itself.
package bounds

// What a member may write; see the package for why.
const (
	MaxHolder = 320      // bytes of spec.holderIdentity: the name of a node, 253, "_" and a random part
	MaxLease  = 4 << 10  // bytes of a Lease, in the encoding in which it is kept
	MaxBody   = 64 << 10 // bytes of a request

	WriteRate  = 20   // writes a second of one caller, for long
	WriteBurst = 60   // at once
	Writers    = 4096 // callers whose writes are counted apart; further ones share

	// MaxDoubt bounds what a hub says against its leader, in bytes: names of Kubernetes are 253 at most.
	MaxDoubt = 2 << 10
	// MaxStrangers is how many connections may be open over which nobody of the pool has asked anything. Hubs that start
	// together each are one of them for the time of a handshake. A caller with a proven identity is not counted.
	MaxStrangers = 256

	// Quota is what the database of etcd may take, in bytes. Leases of a thousand nodes are 4 MiB at most; the rest is
	// history, which Kubernetes compacts every five minutes.
	Quota = 512 << 20
	// ReclaimAt is the part of the quota at which the history is thrown away before that: half of it.
	ReclaimAt = 2
)
