// Package pooldoor is what a hub shows to its pool, and holds in common with it. Door serves --pool-port: the relays of
// the hub and their state, documents, and what a leader hub serves besides. It serves relays whole, so it accepts only
// hubs of the pool, and the coordinator if there is one. The pool's authority identifies both, and the denylist may
// name neither. Callers only read, except for the heartbeats of their own nodes and for signed documents.
//
//	Door       the port
//	Desk       beside the relays of a leader hub: its Standing, Leases, and the bound of one caller
//	Standing   whether a leader hub hears the cloud, told again at each change, as long as its reader is there
//	RollCall   the way to the pool's roll call (package heartbeat): that of the coordinator, or that of Desk
//	Moved      the way to the desks of the pool's moved pods (package moved): likewise
//	Images     the way to the desk that knows who has content of images (package images), and to those members
//	Notices    signed documents: the authorities, the denylist and the configuration (package bulletin)
//	Mirror     the mirror of registries (package images) in a hub, which reads images of the pool
//	Discovery  one copy of the cloud's API discovery and of the keys that verify tokens of service accounts
//
// All hubs of a pool have a Desk, and each answers what is asked. One that is no leader hub says so in its standing,
// and keeps no Leases.
//
// Notices reads the documents in the cloud, exchanges them with the coordinator, returns to the cloud the documents
// that the cloud has lost, and reports on the Node which of them this hub holds.
//
// A hub that leads asks the cloud for API discovery and keys (Keep) and shows the copies to its pool (Show). Others ask
// the coordinator for them (Fetch, Through).
//
// Mirror has its flags and its port on loopback, and shows the node's content at the port for the pool. A port that is
// taken is told as what the hub lacks, and containerd pulls from registries as without Weir.
//
// # Goroutines
//
// Door, Desk and Standing end with the requests that they answer. Notices.Run starts goroutines, which end with its
// context. Discovery.Keep and Mirror.Run block until their contexts end.
package pooldoor
