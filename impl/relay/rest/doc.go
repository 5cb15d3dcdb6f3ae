// Package rest answers get, list and watch of one Kubernetes resource over HTTP, as kube-apiserver does: in protobuf,
// JSON, metadata only and as tables.
//
// A Handler reads a Source, which is a relay.Relay or a relay.List. It parses the options of a request, negotiates the
// form of the answer, asks the Source for an object, a page or a cursor, and encodes what it gets. A list writes the
// objects of a page straight to the connection. A watch writes what a cursor gives: what comes at once is written
// together, and a frame that does not depend on the watcher is made once for all. Errors are Status objects in the form
// that the client prefers. What cannot be answered truthfully here is left to Handler.Fallback.
//
// The caller of a Handler must have authorized the request.
//
// The package starts no goroutines. A watch runs in that of its request, and ends with it.
package rest
