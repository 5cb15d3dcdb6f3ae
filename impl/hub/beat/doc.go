// Package beat keeps a node alive: its kubelet's heartbeats reach the cloud, by whatever way there is.
//
//	kubelet ─► Beats ─► cloud
//	            └ Mirror ─► coordinator ─► Forwarding of the hub that leads ─► cloud
//
// Beats passes a heartbeat to the cloud, or answers it itself; package heartbeat decides. Mirror writes how the node is to the pool's coordinator. Forwarding, on
// the hub that leads, speaks there for nodes that are cut off.
//
// The constructors start nothing. Mirror.Run, Mirror.Announce and Forwarding.Run block until their context ends, and wait for what they began.
package beat
