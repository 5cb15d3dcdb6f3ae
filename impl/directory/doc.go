// Package directory is what a pool is told about itself: how it shares, who its leader hubs are, where its coordinator is and what it shares.
//
// The cloud says so in the Endpoints leader-hub-<pool> in kube-system, which weir-manager keeps (impl/manager/pools). That one object has all: leader hubs of both
// families of addresses as its subsets, and the rest as annotations. A hub follows it, and no NodePool, whose status changes with each node. Nobody needs the
// EndpointSlices of the same name, of which there is one for each family.
//
//	Entry      what is told
//	Directory  who holds it: Now is what counts, Changed says when that changes
//
// # What counts
//
// Flags count until an object was seen (Config.Flags). After that each field that the object tells counts: mode, coordinators, scope. What it does not tell is as the flags
// have it, so an object that OpenYurt wrote, or an older weir-manager, changes nothing but the leader hubs. Mode is filled in where nobody tells it: by the
// coordinator if there is one, else by leader hubs if the nodes reach each other.
//
// An object that cannot be meant does not count at all, and the last good one stays: one line in the log names field and value, and
// weir_directory_errors_total counts. A deleted object changes nothing either. What was heard last is kept on the disk, so a restart without the cloud knows it.
//
// # Who may tell whom
//
// The object is not signed: whoever could sign it could write it. So it counts by who tells it.
//
//   - The cloud has the last word. While a hub watches the object there, it listens to nobody else.
//   - Otherwise a hub asks its coordinator, or a leader hub that its own entry names, and the coordinator asks the hub that holds its Lease. Everybody asks, and nobody
//     tells unasked: a follower, stolen or not, is asked by nobody, so it redirects nobody.
//   - Versions order entries: what is older than what is held does not count. One exception: who watches the object in the cloud says so (contract.LiveHeader), and its
//     entry counts whatever its version, because a cloud that was restored from a backup goes back, and a leader that lied may have named any number. The
//     coordinator passes that on for as long as its leader says it. A hub says it of its own watch only, so that two that were cut off cannot keep each other sure.
//
// A leader hub that lies can so mislead hubs that do not reach the cloud, as it can by what it feeds them. It gains little: whoever answers at an address has
// to show a certificate of the pool for it, Secrets are no scope, each read is authorized by the cloud, and the cloud's own word ends the lie.
//
// It starts no goroutine. Follow and Keep run in their caller's.
package directory
