// Package hop is the way of a list or a watch from one cache to the next one towards the cloud. An Upstream is the near
// end: an address and a credential, of a kube-apiserver or of somebody's relays. A Server is the far end, which shows
// relays to those who pull from them: to the coordinator those of the leader's hub, whole and as they come. A relay
// that holds nothing begins with the past of who feeds it (rest.PastHeader), so that its own readers resume as before.
//
// A Line is the way to a Server: one connection for all that is read there, by which both ends know whether the other
// one lives.
//
// What an answer means for a relay is none of this package's business: package source knows that. A history that a
// relay tells is handed to a Check before anything else of the answer is looked at.
//
// Each function runs in its caller's goroutine until its context ends. A Server ends with the requests that it answers.
package hop
