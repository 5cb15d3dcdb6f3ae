// Package invariant judges what a client's stream carried against the whole history that the cloud went through.
//
// The promises are those of list and watch, as etcd's robustness tests name them: a stream is ordered, unique, reliable (nothing of
// its filter is missing), resumable, bookmarkable (a bookmark hides nothing), filtered (an object that enters or leaves the selector
// is ADDED or DELETED), complete (every state and every content is the cloud's at that version), and it never goes back. Besides, a
// list is never empty after a full one. The package is pure.
package invariant
