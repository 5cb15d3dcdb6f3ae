// Package disk is the little that Weir's durable files need of a folder: open, create, append, cut, make durable, rename.
//
// Those who write files of their own (snapshots of relays, the write queue) take the interface Disk, so that their tests run on
// disktest.Flash, which loses power in the middle of an operation, keeps any part of what was not made durable, and fills up.
//
// The package starts no goroutine.
package disk
