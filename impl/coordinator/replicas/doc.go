// Package replicas knows which replicas a coordinator has: those of its flags and, if weir-manager placed it, those
// that the pool is told of.
//
//	Member     one of them: its name, and where it is
//	Set        all of them as they are now, and the others as sources
//	Placement  one stay of a replica on a node: whose data counts, and whether the pool has others in its place
//	Fed        which of them reads the leader
//
// It starts no goroutine.
package replicas
