// Package bench measures what Weir is for, and what it costs, on one machine:
//
//   - the bytes that cross the uplink of a pool: stock, with a hub on each node, with hubs that are a pool, in the same
//     run;
//   - the failover grace periods: for each kind of loss, how long nobody goes to the cloud to read for the pool, and
//     how soon service is normal;
//   - how soon the cache is ready: with empty disks, from disk, after a power cut without the cloud;
//   - server CPU per GB listed and per watch event, a hub's relay beside kube-apiserver and a bare net/http server:
//     same objects, same TLS and HTTP/2, no compression, the same clients, which read as client-go does and discard;
//   - the latency that a hub adds to a proxied get, over the one over a connection straight to kube-apiserver;
//   - memory (RssAnon, VmRSS beside it) of hub and coordinator: idle, with objects, while 20 clients list everything at
//     once;
//   - what a hub costs more that is a mirror of registries: idle, and while four members of its pool read a layer of
//     1 GB each; and what that costs beside http.ServeContent of the same file;
//   - what a change costs from one relay to another, as a difference and as a whole object; and what it costs a relay
//     that a thousand others read it so;
//   - what the certificates of a node cost its uplink in a year, per day: requests and watches of a hub, over a link
//     that counts;
//   - what reaches an edge node when the status of its NodePool changes: to a watch of the NodePool, and to that of a
//     hub;
//   - what weir-manager costs in a cluster of 5,000 nodes and 200 pools, once it has written what pools need: CPU,
//     memory, requests; beside one of an earlier commit, if one is given;
//   - what the store of a hub writes in an hour of virtual time, and how soon a new process answers from one of 200 MB.
//
// Beside that, and alone, it measures another hub that a profile describes (bench/peer, Rival): Weir's hubs and the
// peer stand behind equal uplinks of one kube-apiserver, and clients of both list and watch the same changes at the
// same time.
//
// Machines are shared and noisy: rounds alternate between the two sides, and the median of the rounds counts. It uses
// the runtime of the testbed: real kube-apiserver, real processes. It starts one goroutine per client and waits for
// them.
//
// A figure has the samples of its rounds and, if it is judged, a limit that says who set it. A report is three files:
// summary.md for people, result.json, and bench.txt in the format of Go benchmarks, which benchstat compares. A missed
// limit is an error. Parts are measured one after the other and the report is written after each, so that a run can be
// resumed.
package bench
