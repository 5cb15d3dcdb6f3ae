// Package card measures builds of Weir beside one another. Each build runs in a pool of its own, at the same time,
// behind equal links to the same cloud. So all builds bear the same load, and only the builds differ. The base has two
// pools: their difference is noise.
//
//   - start: what crosses the uplink until the caches of a pool with empty disks are ready, and how long that takes;
//   - memory: RssAnon of hubs and coordinator, filled;
//   - changes: bytes of class pool for a series of changes;
//   - heartbeat: bytes of one renewal of a node's Lease, of class heartbeat;
//   - get: the time of a get that a relay answers and of one that goes through to the cloud, request by request in
//     turn, in each round at another node's hub; the hub's CPU for it;
//   - leader change: the hub that leads is killed in all pools at once: lists, watches and reviews at kube-apiserver
//     from the kill until all is as before, lists at the coordinator, bytes of class pool;
//   - grace: the coordinator is killed in all pools at once and comes back: new connections of class pool meanwhile.
//
// The figures go to sim/change, which judges them. A measurement owns what it starts, and ends it before it returns.
package card
