// Package queue keeps the writes of a node while the cloud was away, and sends them when it is back: the status of the
// node and of its pods, labels and annotations of the node, and Events. It queues nothing else. It knows no HTTP: the
// hub gives it the writes, and a Cloud to send them to.
//
// # The model
//
// An entry is all writes of one object, coalesced: what the cloud had (Base), what the node made of it (Ours). A client
// that reads its own object meanwhile is shown Ours (Lookup). What is about the node goes first, then its pods, then
// Events: Events are paced, and statuses must not wait behind them. Among these, entries are ordered by their last
// write: what the cloud sees is the history of the node's writes, in order, less those that a later write replaced.
//
// Draining pushes the first entry until there is none. A status is brought into the cloud's object of now, by three-way
// merge, and put at that object's version and uid: the cloud takes it only if nobody has changed the object meanwhile,
// else it is merged again. What others changed stays, but for what the node changed as well. If the object is gone, or
// another one has its name, the entry is dropped. An Event is created; if there is one of its name, it is the same one,
// and its count is brought up to ours.
//
// # Nothing is lost
//
// Put returns after the write is on the disk, so what a client was answered survives kill -9 and a power cut. What
// cannot be kept is refused, and the client tries again: a full disk, a full queue, too many Events. Nothing that was
// answered is ever thrown away to make room.
//
// # Nothing is done twice
//
// Between a push and the note that it is done, anything may happen. So before a status is sent, it is noted, durably,
// what is sent in place of which version. The process that finds such a note asks the cloud's object: is it still that
// version, then nothing has arrived. Else, has it most of the values that were to change? Then it arrived, and where it
// differs now others came later; it counts as the new Base. This could be wrong only if another wrote most of the same
// values, with their times, at the same moment. What is pushed again for another reason does nothing: the merge gives
// the cloud's object.
//
// # The file
//
// queue.log is a log of its own, not a part of the cache's database: the cache can be fetched again, and a database
// that is damaged is set aside; these writes are nowhere else. A record appended costs one write and one sync, where a
// transaction of the database costs several pages and two.
//
//	"weirqueue1\n", or "weirqueue2\n" if its records are encrypted (Config.Key)
//	frame*: mark (4 bytes), length (4), CRC-32C of length and record (4), record
//	record: kind, number of the write, flag, and
//	  P  a write: target, time, ours, base if it is the first of its target
//	  S  what the entry is now is about to be sent, in place of a version of the cloud's object
//	  D  the entry is done
//	  K  a whole entry, where the file was rewritten
//
// The file is rewritten beside the old one, which it replaces, when more than half of it, and at least 256 KiB, is of
// no use any more, and when the queue is empty. A tail that a power cut left is cut off: it was not answered. Behind a
// damaged frame the next one is found by its mark, and the rest counts; a copy of the file is kept as queue.log.bad,
// but not one that may be in the clear while there is a key. A file of which this version of Weir can read nothing is
// kept so too. A damaged last frame looks like a tail. After a failed sync the file is rewritten. So it is when a key
// appears over a file in the clear. Frames of which the key is not here count as damaged: they are in the copy.
//
// # Goroutines
//
// None. Put may be called by many, and they wait for each other's sync: a node has two writers, its kubelet's status
// manager and its recorder of Events, so gathering their syncs would gain nothing. Drain is called by one goroutine of
// the hub.
package queue
