// Package images has one copy of an image cross the link of a pool. A hub is a registry mirror for the containerd of
// its node, and members of the pool read content from each other.
//
//	containerd ──► Mirror ──► Store: containerd's own files
//	    │            ├──────► desk of the pool: who has it, who pulls it (package exchange)
//	    │            └──────► Shown of another hub ──► Store there
//	    └── 404 ──► registry
//
//	Store   the content store of the node's containerd, as files, only read
//	Mirror  the OCI distribution API for containerd, read only; its Run tells the pool what the node has
//	Shown   what other members read of the Store, also of what containerd is pulling
//	Pool    the way to desk and members, which the hub gives
//
// Nothing is stored twice, and no registry is called: the hub has no credential. What nobody in the pool has, the
// mirror answers with 404. containerd then asks its next host, the registry. Mirrors of other nodes that want the same
// read it from the node that pulls, while it grows.
//
// # Why files
//
// An open file outlives containerd's garbage collection and restart, and what is being pulled can be read as it grows.
// containerd's API offers neither, and would bring gRPC into the hub. The layout is that of containerd's package
// plugins/content/local, which has not changed since version 1.0. Tests in sim/containerd hold it against the real
// one.
//
// # What breaks off
//
// An answer that breaks off ends short. containerd sees by its length that there is more, and asks again with Range
// from the byte that it has, here first and then at the registry. So a puller that dies costs nothing that was read.
// A member is left that does not answer. A pull is left that containerd does not have open, after desk.Stall, and one
// without a new byte for desk.Slow: containerd writes a MiB at a time. So much of a layer is lost with a node.
//
// # Who knows what
//
// Each hub says at the desk which digests its node holds: all of them to a desk that does not know it, and changes
// after. The other way, to have the desk ask around for each digest, would cost a question to every member while a pod
// waits, and the desk would know nothing of nodes that do not answer. It is 134 KB for a store of 2,000 blobs, once.
//
// # Tags
//
// A registry says what a tag leads to, while it can be reached: the first two nodes ask it, and what both were told is
// the answer to others for a minute. While the cloud is away, the last answer that a node knows counts: of its own
// registry, or of two members. It is kept on disk. Without one, the word of one member counts that no other one
// contradicts. Nobody tells a hub what the registry said: see tagBook for how it is seen.
//
// # Wrong bytes
//
// containerd verifies each digest, so wrong bytes never run. The hub hashes what it passes on as a whole, and names a
// member that served something else to the desk. A manifest is verified before any of it is passed on. A part of a
// blob cannot be verified by itself.
//
// # Goroutines
//
// Mirror.Run blocks until its context ends. All else ends with the request that it answers.
package images
