// Package offline keeps the answers of the cloud to the clients of a node, and serves them while the cloud is away. It
// has two halves around a store: a Recorder copies answers that pass through the proxy of a hub, and a Server answers
// reads. The hub decides which caller may read, when the cloud is away, and what becomes of writes.
//
// # Recording
//
// Lists (also in pages, by their continue tokens), watches (also streaming lists), gets, 404 of gets, and the answers
// to writes are kept, of any resource, for any client, per component and as asked: protobuf or JSON, whole objects or
// their metadata. Tables, CBOR, YAML, subresources and objects without a version are not. So are the documents that
// kubectl and client-go begin with: /version, /api, /apis and what is below, OpenAPI v2 and v3.
//
// A Recorder only looks. Its parser gets bytes after the client has them, runs in the client's own goroutine as a
// coroutine, and takes objects one by one: a list is never held as a whole, and an idle watch holds nothing. What
// cannot be read is not kept, what is missed makes a collection incomplete. Objects and documents that have not come as
// a whole share 16 MiB: beyond, the recording that has stood still longest is given up.
//
// A watch continues a list only if the store has that list up to the watch's version. A hub that was killed may have
// written less than the client saw, bookmarks above all. Then the hub asks for the list once, in the client's name, two
// at a time, and holds the events until it has come, at most 1 MiB of them. The client waits for nothing. If the list
// fails, the watch is not recorded; its next one tries again.
//
// Config.Shown is told of each object that a watch has shown, when the store has it. Held gives an object that an open
// watch holds.
//
// # Serving
//
//	what is asked                                          answer
//	get: the cloud has shown it                            200
//	get: the cloud said 404, or gave a list without it     404
//	get: anything else                                     503, a reason
//	list, watch: as some client asked for it, or a part
//	  by labels, namespace or name of a list of all        200
//	list, watch: anything else                             503
//	document: as some client asked for it                  200, 304
//	subresources, healthz, all else                        503
//
// Objects are answered as package rest answers them, from a relay.List of what the store has selected: versions,
// encodings, pages, bookmarks and errors are those of relays, hence of kube-apiserver. A watch from the version that
// the store is at, or a later one, is silent but for bookmarks; from an earlier one it gets 410, and the client lists
// here. It ends when the hub says that the cloud is back, and the client goes on there at its version. Objects kept as
// protobuf are answered as JSON if their type is compiled in and knows all their fields. A client that asks for a table
// gets one of pods and nodes that are kept as protobuf, since the kubelet does so; of all else it gets the objects, of
// which kubectl prints name and age.
//
// What the node wrote meanwhile is shown in place of what the cloud had, under the cloud's last version
// (Config.Overlay). What other nodes know of moved pods is laid over that (Config.Corrections). Then a watch is not
// silent, and its client may be served from here for a while when the cloud is back.
//
// # Goroutines
//
// New starts none. Each watch that has to catch up has one until it has; it ends with the client's request.
// Recorder.Wait waits for them.
package offline
