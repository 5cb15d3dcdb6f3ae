// Package hop carries lists and watches from one cache to the next one towards the cloud. An Upstream is the near end:
// the address and the credential of a kube-apiserver, or of another process with relays. A Server is the far end: it
// serves relays to those that pull from them. For example, it serves the relays of the leader's hub to the coordinator,
// whole and unchanged. An empty relay first gets the past changes of the relay that it reads (rest.PastHeader), so that
// its own readers resume as before.
//
// A Line is the way to a Server: one connection for all that is read there, by which both ends know whether the other
// one lives.
//
// What an answer means for a relay is none of this package's business: package source knows that. A history that a
// relay tells is handed to a Check before anything else of the answer is looked at.
//
// Each function runs in its caller's goroutine until its context ends. A Server ends with the requests that it answers.
package hop
