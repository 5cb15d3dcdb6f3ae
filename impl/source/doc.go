// Package source feeds relays: from the cloud, from the coordinator, and from a leader's hub into the coordinator.
//
// A Feeder keeps one relay fed from the Upstream that its owner chose last. It lists once, then watches, and resumes at
// the version that the relay has reached, after any break and at any other upstream: versions are the cloud's everywhere.
// Watches are short (Config.WatchTimeout), because kube-apiserver sends a bookmark 2 s
// before a watch ends: that is what shows, on a quiet resource, that the stream still lives (rule 4 of a relay). The first
// stream, which began with the list, is kept beside them for as long as it lasts if it is compressed; the short watches then
// bring metadata only, and run only while it is quiet.
//
// Bytes decide what follows a break. A short one is resumed at the version reached. After a long one, in which more was missed than
// a list would bring, a compressed list is opened; and once plain watches have brought as much as the relay holds: see thrift. After a
// 410 the metadata of all objects tell what to fetch: see resync.
//
// Push and Receive are the two ends of a feed: the leader's hub pushes what its relay shows to the coordinator, as one
// streamed POST per resource. A push suits hubs that listen on loopback only, and the coordinator decides whom it lets in.
// The body is one byte that tells the mode, then a watch stream: either the events behind the version that the coordinator said it
// has reached (modeResume), or all objects, a bookmark that ends them, and then events (modeList).
//
// Each function runs in its caller's goroutine until its context ends. Push starts two helpers and waits for both.
package source
