// Package status is weir status: the pools of a cluster, their nodes, and who hears whom, on one page.
//
// It tells what the cloud knows. How old relays are, and what went over the uplink, hubs tell about once an hour (package digest); weir-manager keeps it in the
// status of the Pool. What nobody has told is a dash: by a hub or a weir-manager of before, or in a pool that has no Pool.
//
// It starts no goroutine.
package status
