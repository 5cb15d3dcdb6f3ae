// Package preloads lets the Jobs of weir images pull run: one of a pool at a time, in the hours that its Pool names. It
// makes and deletes none. What runs, and which comes first, says package images/preload.
//
// The Jobs are the record: those that are suspended wait. So another weir-manager goes on from what there is.
//
// A stolen token of weir-manager could let such a Job run at another hour, and no more: the policy weir-manager-preload
// lets weir-manager change nothing but spec.suspend.
//
// # Goroutines
//
// Add starts none. What it adds runs while the manager leads, and ends with its context.
package preloads
