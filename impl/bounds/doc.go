// Package bounds holds the limits of what one caller, and all callers together, may take of a hub or of a coordinator.
// Each limit is a constant here, and docs/limits.md, the table for operators, is made from them. The package holds
// nothing else.
//
// Of a hub these are limits of callers other than its own node (hub.go). Of a coordinator they are limits of what one
// caller may write, and how often (coordinator.go).
//
// # Sizes at a coordinator
//
// A Lease is some hundred bytes, but for names: one of a node has 253 at most, and stands in a Lease up to four times.
// 4 KiB are twice the largest one that a hub writes. A request has 64 KiB at most, since a Lease as JSON may escape
// each byte by six. What is signed has bounds of its own, see packages denylist, trust and directory.
//
// # Writes at a coordinator
//
// A hub sends the heartbeat of its node every 10 s. The leader renews its two Leases about every 2 s each, and a hub
// that opens lines opens the next one when one is taken. What fails is tried again every 0.5 s. That is 3 writes a
// second at most for long, and some ten at once when something changes. WriteRate and WriteBurst are several times
// that, for settings that are quicker. One stolen node can so add WriteRate × MaxLease × 5 min, 24 MiB, to the history
// of etcd until Kubernetes compacts it: twenty of them fill half of its quota in that time, where the store compacts by
// itself.
package bounds
