// Package relayed is about requests for resources that relays hold: which those are, and what a read of a relay has to show.
//
// A Router finds the Target of a request. Consistency lets a read with unset resourceVersion wait until the relay shows what was written through this hub, and
// nothing that is older than the hub may show. For what only the cloud knows it asks the cloud, once for all who want to know.
//
// New starts nothing. Questions run in goroutines of their own, each at most for three seconds, and end with the context that Start is given.
package relayed
