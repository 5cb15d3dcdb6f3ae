// Package runner runs a scenario: it brings up a site with up to three pools over equal links, the reference, the stock
// way and Weir, lets clients watch while the workload changes, has every client's stream judged, and makes the result
// that sim/report renders.
//
// The three ways run side by side, so that they carry the very same changes. Each has a link of its own. The window in
// which Weir and the reference are compared ends when both have delivered everything; the stock way, whose link is
// saturated, gets more time to catch up, and what it carried until then counts.
//
// Faults happen beside the changes, by the types of sim/scenario: a run is their laboratory. Each is an episode: it
// begins, a marker is written and followed, it is healed, another marker is written and followed, and what crossed the
// link meanwhile is counted. A run does not pass before it is proved that nothing is left of them. A writer to the
// cloud holds a lock, which a fault of the apiserver takes for as long as it lasts.
//
// In a blackout clients are restarted while the cloud is away, on nodes whose hub kept its disk, with the credentials
// that they had; their streams are judged as all others are. Hubs are asked how old their state is, and that is held
// against the time since the cut.
//
// A run owns all goroutines that it starts and ends them before it returns; the processes belong to the runtime.
package runner
