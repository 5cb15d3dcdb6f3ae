// Package snapshot keeps the relays of a process on disk (rule 9 of a relay). After a power cut of a whole pool, with
// the cloud away, lists and watches are served as before, together with their age.
//
// Open gives each relay of a process what the last process held, at the version it had reached and with the events of
// its ring. So a source is resumed by version, and clients come back at the versions they have seen: a restart costs
// neither a list. A relay so filled counts as restored (relay.Status.Restored), hence not as fresh, until its source
// shows a sign.
//
// # What is on the disk
//
// One file a relay: the state at the oldest version from which a watch can resume, then the changes since, in order
// (see format.go). Changes are appended as they come; once as much was appended as the file began with, it is rewritten
// beside the old one, made durable, and takes its name. Objects are written as they came from the cloud.
//
// # What it costs a flash
//
// Each changed byte is written once when it is appended. A file that begins with C bytes is rewritten after A >= max(C,
// 1 MiB) more; the new one holds nothing that the old one did not, so at most C+A. That is at most 3 bytes written per
// byte of change, and 2 while the size stands. Blocks and their checksums add 9 bytes to each 64 KiB, or to each write
// if that is smaller. The first file is written as soon as the relay has a state, and the first change of a process as
// soon as it comes. Other writes are Config.Every apart, each with one fsync. While nothing changes, 30 bytes are
// written each Config.Idle, so that the age told after a power cut is right to that time.
//
// # What can go wrong
//
//   - Power is cut, the process is killed: what was appended since the last fsync, at most Config.Every ago, may be
//     lost or torn. Checksums tell where the whole part ends; it is a state that the relay was in. A batch (rule 6)
//     counts if it is complete.
//   - The disk is full or broken: the relay serves on; it is logged once, counted, and tried again later, with pauses
//     from 15 s to 5 min. What a write left behind is cut off; after a failed fsync the file is rewritten. The file
//     that stands is never written over.
//   - The file is damaged, of another relay, or of a later version of Weir: it is kept under the name *.bad, which is
//     logged, and the relay starts empty.
//   - The wall clock is wrong: it is the only one that a restart leaves. An age below zero is told as zero, and no age
//     makes a restored relay fresh; when the clock is set right, so is the age.
//
// # What is in the clear
//
// All of it: what a pool shares is read by all its nodes. Secrets are never among it, since relays have none
// (relay.ParseResource refuses them). A cluster that shares ConfigMaps or Pods in a pool has these in the clear on each
// node's disk and on the coordinator's.
//
// # Memory
//
// Nothing is copied but the block being written or read, 64 KiB or one object. While a file is written, the relay's
// tree is shared with the writer, and events that the ring drops meanwhile stay.
//
// # Goroutines
//
// Open starts none. Run starts one for each relay, which end with its context, after a last write.
package snapshot
