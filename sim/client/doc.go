// Package client runs the real clients of an edge node, client-go informers and kubectl, and records all that their
// streams carry: lists, openings of watches, events, bookmarks, errors and ends.
//
//	streams, err := client.Open(ctx, config, client.Specs("coredns")...)
//	…
//	ops := streams[0].Recording.Ops()
//
// A recording is made where client-go meets the API, by the functions that list and watch: it holds what the server
// sent, in the order in which the informer took it. What an informer did not take before it closed a watch is not in
// the recording, so the next watch starts where the recording ends. A recording holds hashes of contents, never
// objects; sim/invariant judges it.
//
// The streams of one Open share a connection, as the informers of one process do, and no other stream has a part in it.
// Each has an informer, which starts goroutines of its own; all of them end with the context of Open, and Stream.Wait
// waits for them. Kubectl waits for the process that it starts.
package client
