// Package disk has the few file operations that Weir's durable files need: open, create, append, truncate, sync and
// rename.
//
// Those who write files of their own (snapshots of relays, the write queue) take the interface Disk, so that their
// tests run on disktest.Flash, which loses power in the middle of an operation, keeps any part of what was not made
// durable, and fills up.
//
// What it makes, its owner alone can read. It follows no link that stands in place of a file: in a folder that others
// can write, what a link leads to would be theirs to choose.
//
// An Unpacker, PackBytes and Checksum decode and encode the values in the records of packages snapshot, store and
// store/queue. An Unpacker does not trust its input: no input makes it panic, or use more memory than the input has
// bytes.
//
// The package starts no goroutine.
package disk
