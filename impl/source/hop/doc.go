// Package hop carries lists and watches from one cache to the next one towards the cloud. An Upstream is the near end:
// the address and the credential of a kube-apiserver, or of another process with relays. A Server is the far end: it
// serves relays to those that pull from them. For example, it serves the relays of the leader's hub to the coordinator,
// whole and unchanged. An empty relay first gets the past changes of the relay that it reads (rest.PastHeader), so that
// its own readers resume as before.
//
// A Line is the way to a Server: one connection for all that is read there, by which both ends know whether the other
// one lives.
//
// # A server that dials
//
// A Listener serves over a connection that the server dialed. Nodes that cannot accept a connection, for example behind
// NAT, can so be read by others.
//
// The one who connects sends POST contract.LinePath with "Upgrade: weir-line" over HTTP/1.1 (RFC 9110, section 7.8).
// After the answer 101 the roles are exchanged. What follows is what a connection of the other direction would carry,
// with a TLS handshake of its own, so each knows the other by the same rules. A connection waits without a byte until
// it is wanted; then the next one is opened.
//
// # What it leaves to others
//
// What an answer means for a relay is none of this package's business: package source knows that. A history that a
// relay tells is handed to a Check before anything else of the answer is looked at.
//
// Each function runs in its caller's goroutine until its context ends. A Server ends with the requests that it answers.
package hop
