// Package store keeps, on the disk of a node, what the clients of that node read from the cloud. So they can be
// answered while the cloud is away, also after a restart of everything. Package queue keeps what they wrote meanwhile.
// The package knows no HTTP: the hub passes it what goes through its proxy, and asks it.
//
// # What can be said
//
// Of an object: Known, as the cloud last showed it; KnownAbsent, as the cloud said 404, deleted it under a watch, or
// gave a complete list without it; else Unknown, of which nobody may make a 404. Of a collection: all of it, at its
// version, or nothing: a list with an object missing would make a kubelet stop a pod. Each answer tells when the cloud
// last vouched for it. Who may read what is not judged here: objects are shared, and the hub must have authorized the
// caller.
//
// # The model
//
// A Shape is a collection as one component asks for it: resource, namespace, selectors, form (protobuf or JSON, whole
// objects or their metadata). A get is the shape that selects one name. Any number of shapes of one component and
// resource stand side by side. A shape is kept as the set of its members' keys and the version reached; the objects
// themselves are kept once per form, whoever asked, as the bytes that came, with the newest version that anybody was
// shown. So the kubelet's Secrets, each a watch of its own, cost 100 bytes each beside the object; metadata are taken
// from the whole object where there is one.
//
// The cloud has said which objects are members: selectors are not evaluated here, so any field selector works, those of
// custom resources too. A shape that nobody has asked for is answered from a complete list without selectors, by
// labels, name and namespace; else it is unknown. Tables are not kept: they are what the cloud's printers make of
// objects, and who asks for one takes objects too. Objects of which the versions are no numbers (of some aggregated
// APIs) are not kept.
//
// What is known of an object is replaced only by something newer: by version, within one life of the cloud's history
// (NewHistory). A watch that shows DELETED proves that the object is gone if its shape selects by name or namespace
// alone, or if it is the pods of a node; else it may merely have left the selection, and the object counts only as long
// as another collection has it.
//
// # The files
//
//	lock            one process uses the folder
//	cache.db        bbolt, with the tables below, see package table
//	cache.db.new    the same, while it is rewritten
//	queue.log       what waits for the cloud, see package queue
//
//	table      key                                     value
//	objects    resource, namespace, name, form         what the cloud said, version, uid, kind, bytes (encrypted)
//	members    hash of a shape, namespace, name
//	shapes     component, resource, form, namespace,   version, complete or not, as of, last asked for, number of
//	                                                   members, sum of
//	           selectors                               hashes of their keys
//	documents  name                                    discovery, OpenAPI, /version
//	about      fresh, epoch, format, sealed, digest
//
// Package table keeps them, and judges what of them can be believed.
//
// # What it costs a flash
//
// Changes are gathered in memory and written in one transaction for all, each object once however often it changed:
// what came or went, and what this node's clients wrote, every Config.Every (5 s), what merely changed every
// Config.Lazy (1 min). A transaction writes the pages of the objects, one or two above each, the list of free pages,
// and the page that makes them count, with two syncs. Bookmarks and gets that show nothing new are not written; that
// the cloud is still there is, every Config.Idle (10 min). A power cut costs what was not written: it can be fetched
// again, which the hub does when a client resumes a watch that the store does not reach (Store.Covers). bench/wear.go
// measures all this beside a file per object.
//
// # What can go wrong
//
//   - Killed, power cut, at any write: a transaction counts or it does not.
//   - A damaged row is dropped when it is read, at the latest by the check of all rows after a start. Collections that
//     it was part of are unknown until they are listed again: by a client, or by the hub when a client's watch begins
//     again (Store.Covers), which is within ten minutes. All others are served.
//   - A damaged page costs the rows of its groups, as above. What bbolt still stumbles over (it panics, or faults) is
//     removed, and a new file begins. No copy is kept for anybody to look at: it might hold what should not lie about.
//     The queue has a file of its own and is not touched.
//   - A disk that lies about a sync, and keeps a page of before: the transaction before counts, or what is in the
//     groups of that page is unknown.
//   - A row that bbolt does not take, for one with a key that is too long, is dropped: it keeps no other from the disk.
//     Keys of more than 4 KiB, of which a caller chooses selectors and names, are not written in the first place.
//   - The disk is full, or breaks: the store serves from memory and from what it can read; it tries again, with pauses
//     from 5 s to 5 min. If more than 16 MiB wait, they are dropped, and what they were part of is incomplete. After a
//     failed commit the file is opened again, since bbolt's memory may differ from the disk.
//   - The store is full: whole components are dropped. The caller that has most gives first, of its components the one
//     that asked least recently. A caller is whom the cloud has authenticated, whatever it calls itself (Owner); all
//     but the node have 2,000 collections at most. So nobody can make the store drop what others live from. What the
//     kubelet asked for, the node's pods and all they refer to, is never dropped, nor is the queue.
//   - One caller's lists outrun the disk: when 8 of the 16 MiB wait, only the node's own are recorded.
//   - The wall clock is wrong: ages are, as they are told by it. Nothing else depends on it but how long nobody asked.
//
// What nobody has asked for in Config.Forget (30 days) is dropped, but only while the cloud has been there for an hour:
// a node that is cut off forgets nothing, and a client that was cut off has time to come back. Objects go when they are
// in no collection any more, which only the cloud's word brings about.
//
// # Encryption
//
// With Config.Key the bytes of all objects (Secrets and tokens, but also ConfigMaps, and pods, of which the environment
// may have passwords) and the records of the queue are encrypted with AES-256-GCM, each bound to its place and version.
// See package disk for the key, and what it is worth. In the clear are names, versions, selectors, uids and times, and
// documents: discovery, OpenAPI, and the public keys of the cluster.
//
// If a key appears over a file that was written without one, a new file is written and the old one removed, free pages
// and all; the queue is rewritten. (The blocks of removed files are the file system's.) Without the key, or with
// another, what is encrypted is unknown, and stays until it is recorded again.
//
// # Memory
//
// In memory are the collections (about 500 bytes each), and what waits to be written. Objects are read from the mapped
// file, one at a time. Opening looks at the whole file, page by page, and keeps the table shapes.
//
// # Goroutines
//
// Open starts none. Run is one, which the hub starts and ends by its context; it alone writes to the database. All
// methods may be called by many at once; none waits for the disk but to read.
package store
