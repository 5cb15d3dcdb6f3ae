// Package disk has the few file operations that Weir's durable files need: open, create, append, truncate, sync and
// rename.
//
// Those who write files of their own (snapshots of relays, the write queue) take the interface Disk, so that their
// tests run on testkit.Flash, which loses power in the middle of an operation, keeps any part of what was not made
// durable, and fills up.
//
// What it makes, its owner alone can read. It follows no link that stands in place of a file: in a folder that others
// can write, what a link leads to would be theirs to choose.
//
// An Unpacker, PackBytes and Checksum decode and encode the values in the records of packages snapshot, store and
// store/queue. An Unpacker does not trust its input: no input makes it panic, or use more memory than the input has
// bytes.
//
// # Sealing
//
// A Key encrypts the files that Weir keeps on a disk, and a KeySource finds it.
//
// A key is 32 random bytes. It survives a loss of power, since a node starts without the cloud: nobody can be asked for
// it. It comes from the first of
//
//  1. a file that an operator names (KeySource.File): on another device, or one that a TPM or a person unlocks;
//  2. the credential weir-store-key of systemd ($CREDENTIALS_DIRECTORY/weir-store-key);
//  3. a file that is made at the first start, of mode 0600 and outside the folder with the data (KeySource.Generated).
//
// The second is the way to a TPM. systemd seals the key to the machine's TPM2 and unseals it for the service at each
// start:
//
//	head -c 32 /dev/urandom | systemd-creds encrypt --with-key=tpm2 --name=weir-store-key -
//	/etc/credstore.encrypted/weir-store-key
//	[Service]
//	LoadCredentialEncrypted=weir-store-key
//
// Weir does not talk to a TPM itself: that would be a policy of PCRs, its renewal at each update of the firmware, and a
// way back in when it fails, all of which systemd has.
//
// # What sealing is worth
//
// It protects copies of the data: a backup, a folder that was sent to somebody, a disk other than the one with the key.
// With the third way alone it does not protect a whole disk that is stolen, since the key is on it; with a TPM it does,
// if the machine does not come along. It never protects from root on the running machine.
//
// What is sealed is AES-256-GCM with a random nonce, bound to a place, and begins with the name of its key: so what
// another key has sealed is told from what is damaged, and is left as it is.
//
// The package starts no goroutine.
package disk
