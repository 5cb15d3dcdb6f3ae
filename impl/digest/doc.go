// Package digest is one line in which a hub reports about itself to the cloud: its version and role, the age of its
// relays, its bytes on the uplink and the bytes that its clients got.
//
// A hub puts it as contract.DigestAnnotation on a heartbeat of its kubelet, which crosses the uplink anyway, so it
// costs no request. The next heartbeat does not carry it: the annotation stands on the Lease of the node for seconds,
// and weir-manager, which watches these Leases, keeps what it said. A Lease is in no relay, and nobody in the pool
// watches it, so nothing of it comes back. A Rhythm decides when it is worth its bytes.
//
// Root of a node writes what it likes there. Parse bounds it. One that lies changes what is shown of his pool, and
// nothing else follows from it.
//
// # Edges that fail
//
// A hub looks at its own ways to others (package connectivity). The digest names those that fail, with the port and the
// cause: EdgesOf bounds them. An edge that works is not in it and costs nothing.
//
// # What is read
//
// Reads are a second line: which resources clients of the node read of the whole cluster, and the cloud answers one by
// one, and which shared ones nobody reads. It is contract.ReadsAnnotation on another heartbeat than the digest, four
// times a day mostly (ReadsRhythm), and kept in the same way. ParseReads bounds it. A person decides by it what the
// pool is to share; nothing is shared by itself.
//
// # What a hub holds
//
// A Holding is the report of a hub about its trust bundle and its certificates: which bundle the hub holds, and when
// each certificate begins and expires. The report is the annotation contract.HoldsAnnotation of the Node.
//
// A Teller writes it as the node, which kube-apiserver lets write its own Node and no other. So nothing is granted for
// it. weir-manager goes on with a rotation when all have heard, and tells a person of certificates that end. Nothing
// else follows from what a node says here: one that lies harms itself, or lets a rotation go on before all others have
// heard, who then follow the chain of bundles.
//
// # Goroutines
//
// None. Teller.Run runs in its caller's; all else is pure.
package digest
