// Package status is weir status: the pools of a cluster, their nodes, and who hears whom, on one page.
//
// It tells what the cloud knows. How old a relay is, and what went over the uplink, hubs know: their metrics tell.
//
// It starts no goroutine.
package status
