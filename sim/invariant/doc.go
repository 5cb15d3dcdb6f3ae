// Package invariant judges what a client's stream carried against the whole history that the cloud went through.
//
//	truth, err := invariant.NewHistory(recorder.Ops())     // of a client.Stream that was there from the beginning
//	verdict := invariant.Judge(truth.Through(selector), stream.Recording.Ops())
//
// The promises are those of list and watch, as etcd's robustness tests name them: a stream is ordered, unique, reliable
// (nothing of its filter is missing), resumable, bookmarkable (a bookmark hides nothing), filtered (an object that
// enters or leaves the selector is ADDED or DELETED, the latter with its previous content), complete (every state and
// every content is the cloud's at that version), and it never goes back. Besides, a list is never empty after a full
// one, and everything is what it says it is. PrevKV and IsCreate of etcd have no meaning in Kubernetes.
//
// A relay that had to compare a list with what it holds (410 from the cloud) sends its clients the difference as one
// batch: DELETED stamped with the version it had reached, then additions and changes in ascending order, each with its
// true version but without the versions in between, then a bookmark. Rules.Batches allows that, and nothing else: every
// content has still to be the cloud's, and at each bookmark, list and at the end the state has to be the cloud's.
//
// The history has to be complete: whatever a stream shows that is later than the history is refused, and a list later
// than its last event is held against its last state. The package is pure: no goroutine, no clock, no I/O.
package invariant
