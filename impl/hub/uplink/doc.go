// Package uplink connects a hub to the servers that it reads from, above all to the cloud: the kube-apiservers of the
// cluster, of which the hub uses one at a time.
//
//	Cloud ─┬─ way of a class of traffic, as the hub, its node or its caller ─► transport ─► dialer ─► connection, metered
//	       ├─ Checker of each server: probes, and what else is heard of it
//	       ├─ IsAway, Reach: whether the cloud is away. Nobody else decides that, and all who have to know are told here
//	       └─ Urgent: small requests that must not wait for a server that is dead
//
// Credentials come from files, and are read again (Reloader). Transport, Dialer and Checker serve connections to the
// pool's coordinator as well.
//
// The package never looks into a request but for what decides about its connection: whether it carries a token, asks
// for an upgrade, or came with a certificate that has expired (Lapse). NewCloud starts nothing. Cloud.Run and
// Reloader.Run block until their context ends.
//
// A User is the user of the hub at the cloud: weir:hub:<pool>:<node>, or its node while the hub has no certificate of
// its own. User.Run blocks until its context ends.
//
// # The cloud
//
// One kube-apiserver is used as long as it is healthy; a request that cannot connect goes to the next. A probe asks GET
// /readyz on a connection of its own. A server that answers it by 500 and more, or not within half of the time-out, is
// asked for the Lease of this node, as the kubelet would. If it answers that, it is healthy and not ready: one hook of
// kube-apiserver can be down while everything else is served. What is answered counts. Readiness decides only which one
// of several healthy servers is used. A healthy server from which anything came within the last three intervals, over a
// connection on which it had proved its name, is not probed, but for each thirtieth interval, the sixth if it feeds the
// relays: it may live and serve nothing. A server that is not ready is probed each interval. On class node HTTP/2 pings
// see to that, 78 bytes each. A server error calls for a probe; a server that failed one is judged by probes alone.
// After a start the first answer to anybody decides, and the hub probes only if none came within an interval, or soon
// if the pool needs a leader. Spare servers are not asked.
//
// The four classes of traffic have connections of their own, one each and per identity: dials wait for each other,
// since a second handshake is dearer than anything that could be won by it. Class pool has one more for watches that
// are left early, with little under way. Bulk delays no probe: there is none on class pool.
//
// So one is left to a hub that follows, and whose heartbeats the pool brings to the cloud: that of its node on class
// node, whose pings show that the way is there. A second one is for questions about callers with tokens, if there are
// any: the watch that was granted last stays open on it (package access). The hub's own on class control ends as well,
// since weir-manager confirms what the pool is told (package bulletin). Then the rare probe goes over that of the node.
// Connections end without requests: those of callers, of heartbeats and of class control after 90 seconds, as
// kube-apiserver would end them, and the one of class pool, by which a hub filled its relays before it followed, after
// one minute.
package uplink
