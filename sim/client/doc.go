// Package client runs the clients of an edge node as they really are, client-go reflectors and kubectl, and records all that
// their streams carry: lists, openings of watches, events, bookmarks, ends.
//
// Each Stream has a connection of its own, as each process on a node has. It starts one goroutine, which ends with the
// context of Start; Wait waits for it. A recording holds hashes, not objects.
package client
