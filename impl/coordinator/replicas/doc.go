// Package replicas knows the replicas of a coordinator: those that its flags name and, if weir-manager placed the
// coordinator, those that the pool's configuration names.
//
//	Member     one of them: its name, and where it is
//	Set        all of them as they are now, and the others as sources
//	Placement  one stay of a replica on a node: whose data counts, and whether the pool has others in its place
//	Fed        which of them reads the leader
//
// It starts no goroutine.
package replicas
