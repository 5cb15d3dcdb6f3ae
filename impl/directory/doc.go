// Package directory holds the configuration that a pool gets from the cloud: its mode, its leader hubs, its
// coordinators and the resources that it shares.
//
// weir-manager signs it by the authority of the pool, and keeps it in the Endpoints leader-hub-<pool> in kube-system
// (impl/manager/pools). Hubs follow that one object, and no NodePool, whose status changes with each node.
//
//	Entry      what is told, and how it is signed
//	ImageRule  how the images of a registry are shared
//	Directory  who holds it: Now is what is valid, Changed says when that changes
//
// # What counts
//
// Flags are used until something that was signed was seen (Config.Flags). After that each field of it counts that it
// tells: mode, coordinators, scope. What it does not tell is as the flags have it. Mode is filled in where nobody tells
// it: by the coordinator if there is one, else by leader hubs if the nodes reach each other.
//
// # Who is believed
//
// Nobody is believed: an Entry is valid if an authority of the pool has signed it that may sign now (Config.Speakers),
// under a higher number than what is held. That rule is one for all who tell it: the cloud, a leader, a coordinator,
// another hub. A leader can keep an Entry back from hubs that reach neither the cloud nor another member. It cannot
// make one, nor bring an older one back. What an authority has signed that may not sign any more gives way to whatever
// is valid, so a key that was stolen has no say once it is replaced.
//
// What other annotations of the object say is for people, and for hubs of before: nobody else reads it. An object that
// OpenYurt wrote has no signature, and changes nothing.
//
// What is invalid changes nothing: one line in the log says why, and weir_directory_errors_total counts. A deleted
// object changes nothing either. What was heard last is kept on the disk with its signature, so a restart without the
// cloud knows it. An earlier version kept an entry without a signature. Such an entry is valid until a signed one is
// seen.
//
// It starts no goroutine. How it travels stands in package bulletin.
package directory
