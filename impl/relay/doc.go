// Package relay is a list/watch cache of one Kubernetes resource that keeps the cloud's resourceVersions,
// UIDs and bytes, and is read by any number of readers with the semantics of kube-apiserver.
//
// One upstream feeds it: Replace with a list, then Apply with each event of the watch that follows. Readers get an
// object (Get), a page of a list (Read), or a cursor in a watch (Watch). Package rest answers HTTP requests from these
// three. A List is read the same way: it is what somebody kept of a resource that nobody hears of now. Since versions
// are the cloud's, a client may leave a watch here and resume it at another relay or at the cloud, and a feeder may do
// the same with its upstream: nothing is listed again.
//
// A Resource that is built into Kubernetes needs no discovery: Builtin has its short names, its scope and its field
// selectors, and Message is its compiled type.
//
// # How it works
//
// Objects are wire.Objects, the bytes as they came with a few decoded fields. They and the last changes are a
// mvcc.State, which Relay guards. A watch is a cursor into its ring: a slow watcher blocks nobody and grows no memory.
// Once the ring has passed its cursor it is closed, and its client resumes, or gets 410 when its version is older than
// the ring. A change after a quiet moment is written at once. In a run of changes watchers are woken at most every
// Config.Gather (20 ms) and write what came meanwhile together, so nothing, bookmarks included, waits longer than that
// at one relay, and on the way through the hub that leads, the coordinator and another hub not longer than three times
// that; 256 KiB of changes do not wait at all, nor does a list that replaces the state. One timer serves all watchers.
// A page is objects of one snapshot of the tree.
//
// # Rules
//
// Other packages name the rules of a relay by these numbers.
//
//   - 1, order: events at or below the version reached are dropped, a list older than it is refused (ErrOlder).
//   - 2, ahead of the cache: get, list and streaming list wait up to 3 s, then 504 with cause
//     ResourceVersionTooLarge; a plain watch is accepted and delivers only what is later.
//   - 3, unset version: answered at the version reached. kube-apiserver would answer linearizably; a relay cannot.
//   - 4, freshness: a relay is fresh while its source shows signs of the cloud. A bookmark is one; a stream on which
//     nothing comes is none.
//   - 5, after 410: the metadata of all objects tell which of them differ, and only those are fetched (package source).
//   - 6, a list over an older state becomes one batch: deletions stamped with the old version, then additions and
//     changes in ascending version, then a bookmark. A watch resumes at either end of a batch; inside, only if it is
//     known what happened on the way to the list (mvcc.Trail): then deletions have their own versions, and who has seen
//     a part, elsewhere or before this relay lost power, goes on. A relay that watches another is told where a batch
//     begins and whom it admits, and takes it as a whole (Intake).
//   - 7, history: a cloud that was restored from a backup uses versions a second time. A list of a later History throws
//     away what is held; watches end with 410, once. See below.
//   - 8, bytes: an object that leaves a selector is DELETED with its previous content and the new version;
//     unsupported field selectors are refused; transcoding that would drop a field is not done (Status.NewerField).
//   - 9, persistence: Export gives the state and the changes of the ring, a Place what follows; a Restoration brings
//     them back. A restored relay serves, and does not count as fresh until its source shows a sign (Status.Restored).
//     A relay tells relays that read it how old its state is (Testimony), so all of a chain know. Package snapshot
//     keeps them on a disk.
//   - 10, bounds: Config.RingBytes and Config.RingAge.
//
// Before its first Replace a relay refuses to be read, as 503 with Retry-After. It never gives an empty list.
//
// # Histories of the cloud
//
// Versions compare within one history only, and nothing in a version tells of which one it is. So histories are counted
// by the one that finds out that the cloud has begun another one (package source), and the number goes wherever
// versions go between relays: with lists, watches and feeds, and to the disk. A relay answers another one only in the
// same history; one that is asked in an earlier history says 410, one that is asked in a later history 503, and both
// name theirs. A later history replaces an earlier one, whatever its versions; within one, an older list is refused as
// ever.
//
// Clients name no history. Those that watch when it changes are told by an ERROR event 410, and list. Those that come
// back afterwards bring a version, and get 410 unless it means something. Until the highest version of the lost
// histories is passed (History.Lost), one ahead of the relay must be reached within the 3 s that a read waits: a client
// may have heard a little more of this history than the relay. One behind it must be a version that the relay was at. A
// watch ahead of a relay is else accepted (rule 2), and would wait in silence.
//
// What remains: a client that was away when the history changed, comes back within the age of the ring, and brings a
// version of the lost history that happens to be one of the present history's as well, is not found out. kube-apiserver
// finds out none. A restore with etcdutl's --bump-revision and --mark-compacted has no such versions at all.
//
// # Concurrency
//
// All methods of Relay are safe for concurrent use; Replace and Apply must come from one feeder at a time. New starts
// no goroutine; the timer that shows watchers gathered changes calls back in one of its own. Run ages the ring and
// frees watchers that are stuck in a write, and ends all watches when its context ends.
package relay
