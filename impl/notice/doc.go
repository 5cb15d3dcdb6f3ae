// Package notice carries small signed texts of which a pool has one each, from the cloud to hubs, and between hubs and coordinator: the denylist,
// and the bundle of authorities.
//
// Whoever holds a text can tell a true one from any other by its signature, so it does not matter who hands it on. This package does not look into it:
// Holder.Take does.
//
//   - Follow reads it in the cloud. There it is one object, a ConfigMap for most.
//   - Returner gives back what a cloud that was restored from a backup has forgotten.
//   - Exchange and Serve let two of a pool hold the same. Share does that again and again.
//
// It starts no goroutine; everything runs in its caller's.
package notice
