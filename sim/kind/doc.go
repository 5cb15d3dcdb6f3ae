// Package kind makes clusters of kind, each in a Docker network of its own, and removes the clusters of runs whose
// process is dead.
//
// All that a run makes in the engine hangs on its network, whose labels name the run and a lock that lives as long as
// its process.
package kind
