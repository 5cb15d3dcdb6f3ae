// Package mvcc keeps the objects of one Kubernetes resource in several versions: as they are at the version reached,
// and as they were at any version that its ring of changes reaches back to.
//
// Objects are in a copy-on-write B-tree ordered by "namespace/name". Changes are events in a ring, which its owner
// bounds in bytes and in age (Trim). A reader is a Place in the ring: it holds no queue. An earlier state is a clone of
// the tree from which later events are removed. What is made of an event for its readers, such as its encoded frame,
// belongs to the event and is shared by all.
//
// A list over an older state becomes one Batch of events. With a Trail, what happened on the way to the list is told as
// well. An Export leaves the process and comes back as a Restoration.
//
// A State takes no lock, knows no clock and starts no goroutine: relay.Relay guards it. Now, At, Past and Export mark
// the tree as shared, and so need the lock of a writer. What they return needs none.
package mvcc
