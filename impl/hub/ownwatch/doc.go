// Package ownwatch keeps the watches of a node's own pods and of its own Node open at the cloud, longer than the node's
// clients keep theirs. A client that comes back costs nothing, and the cloud goes on compressing.
//
//	client ─► Watches ─┬─ streaming list ──────► stream: a watch of the cloud, compressed; it outlives the client
//	                   ├─ goes on at a version ─► the stream that is open, if it has all behind that version
//	                   └─ else ─────────────────► the cloud; when that brought as much as a list, the hub lists
//
// A kubelet ends its watch each five to ten minutes and goes on at the version that it has seen last. kube-apiserver
// compresses a watch that began as a streaming list, each event by itself, and no other one. So all that a kubelet is
// shown behind its first minutes crosses the link at two or three times its size, and each watch that begins costs.
//
// # What is kept
//
// A stream is opened by the client's own streaming list, with the client's question and headers, the node's
// certificate, and a day instead of the client's time. It belongs to that question: path, selectors, encoding and user
// agent. A stream keeps what it brought last, 128 KiB, and nothing of the list itself. The package is no cache: each
// list, get and streaming list goes to the cloud. Two minutes after its last client has left, a stream ends.
//
// A watch that goes on at a version joins the stream if that has brought all behind this version. Its client gets what
// is later, frame by frame as the cloud sent it, bookmarks and deletions included, until its own time is over. Else the
// watch goes to the cloud, as it would without this package. Once it has brought as much as the last list took, and at
// least 16 KiB, the hub opens a stream itself, ignores its list, and moves the client over behind a whole frame: to
// what is later than the client has seen. So a stream comes back after a break, and after a restart of the hub.
//
// # What stays as it was for a client
//
//   - Order and age: a client gets only what is later than the version that it named, or that it was shown last.
//   - A stream is joined only while requests of the node go to the same server with the same credentials, and while it
//     brings something: bookmarks come each minute. Else the client goes where it would have gone without a stream.
//   - Any 401 to the node ends that its streams are joined. Impersonation, tokens and expired certificates pass by.
//   - What the cloud refuses, 410 included, it refuses to the client. An ERROR on a stream is shown to the clients that
//     are there, and nobody joins it any more.
//   - A client that reads slowly slows the stream, as it would its own watch.
//   - A kube-apiserver that compresses no watch (before 1.37) is not listed a second time. What clients open is kept,
//     and those that come back cost nothing there, too.
//
// New starts nothing. Each stream has a goroutine, which ends with the stream. Watches.Run ends all streams when its
// context ends, and waits for them.
package ownwatch
