// Package uplink is how a hub reaches servers, above all the cloud: the cluster's kube-apiservers, of which one is used at a time.
//
//	Cloud ─┬─ way of a class of traffic, as the hub or as its caller ─► transport ─► dialer ─► connection, metered
//	       ├─ Checker of each server: probes, and what else is heard of it
//	       ├─ IsAway, Reach: whether the cloud is away. Nobody else decides that, and all who have to know are told here
//	       └─ Urgent: small requests that must not wait for a server that is dead
//
// Credentials come from files, and are read again (Reloader). Transport, Dialer and Checker serve connections to the pool's coordinator as well.
//
// The package never looks into a request but for what decides about its connection: whether it carries a token, asks for an upgrade, or came with a
// certificate that has expired (Lapse). NewCloud starts nothing. Cloud.Run and Reloader.Run block until their context ends.
package uplink
