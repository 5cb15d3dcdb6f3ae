// Package leaderhub serves what a leader hub shows to the other hubs of a pool without a coordinator, beside its
// relays: its own state, and a place for heartbeats.
//
//	Standing   whether it hears the cloud, told again at each change, for as long as the one that asked is there
//	leases     the Leases of nodes that are cut off (package leases)
//	Bounds     how much one hub of the pool may have under way
//
// All hubs of a pool have all of it, at their pool port, and each answers what is asked. One that is no leader hub says
// so in its standing, and keeps no Leases. Who may come in is the business of the port.
//
// It starts no goroutine: what is here ends with the requests that it answers.
package leaderhub
