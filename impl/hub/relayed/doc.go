// Package relayed holds the relays of a hub and fills them, each from the cloud or from the pool's coordinator, as the
// role of the hub in its pool says. It recognizes the requests that a relay can answer.
//
// A Feeder is package source's, with what a hub has to know beside it: whether the relay has anything to answer with,
// and whether the coordinator has the resource at all. Sources holds all of them, and points them. Relays makes, feeds
// and removes one relay for each resource of the pool (package scope).
//
// A Router finds the Target of a request. Consistency lets a read with unset resourceVersion wait until the relay shows
// what was written through this hub, and nothing that is older than the hub may show. For what only the cloud knows it
// asks the cloud, once for all who want to know.
//
// NewFeeder and NewConsistency start nothing. Feeder.Run blocks until its context ends. Questions run in goroutines of
// their own, each at most for three seconds, and end with the context that Start is given.
//
// # What a relay cannot do
//
// Reads with unset resourceVersion are not linearizable: they are answered at the version reached. But three things
// hold for them.
//
// A hub's clients read their own writes. After a write of a relayed resource through this hub, a read there shows it,
// whatever the write's answer told: the object, a deletion, a conflict, a subresource, or nothing, because the answer
// was lost (see Consistency.Observe). Where only the cloud knows what came of a write, it is asked for the metadata of
// that object, once. Side effects of a write on other resources are not waited for.
//
// While the cloud is there, nothing is shown that is older than 30 s. What is older, or comes from a
// disk, is compared with the version that the cloud says it is at. It is asked once for all clients, and at most each
// 30 s as long as the relay is behind: never by a list. The default is three times the 10 s in which a healthy pool
// shows a sign of a quiet resource, so a healthy pool never asks; and less than the 50 s after which Kubernetes itself
// calls a silent node dead, so what Services lead to is not older than Kubernetes makes it.
//
// A client that has shown a version later than the relay's is not shown an earlier one afterwards.
//
// For each of these a read waits up to 3 s for the relay. Then the cloud itself answers a get, and one list of a
// resource at a time. Other lists, and watches, get 504 with Retry-After: the link is needed for the relay. While the
// cloud is away, reads are answered as old as they are, and contract.AgeHeader tells. A read with
// contract.ConsistentHeader is the cloud's alone to answer.
package relayed
