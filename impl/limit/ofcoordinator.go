package limit

// What a member may write at a coordinator; see the package for why.
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
