// Package status is the command `weir status`. It shows the pools of a cluster, their nodes, and which node is heard
// through which, on one page.
//
// It tells what the cloud knows. How old relays are, and what went over the uplink, hubs tell about once an hour
// (package digest); weir-manager keeps it in the status of the Pool. What nobody has told is a dash: former releases
// tell less, and a NodePool without a Pool has nowhere to keep it.
//
// It starts no goroutine.
package status
