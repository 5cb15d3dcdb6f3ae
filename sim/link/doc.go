// Package link is the thin uplink between a pool of edge nodes and the cloud, and the meter on it.
//
// A Pool is one uplink. Every node has one Proxy per traffic class; all connections of all proxies of a pool
// share the uplink's rate, once per direction. It is built from toxiproxy's parts (toxic collections, links and
// stubs, used as a library) with a toxic of our own, because toxiproxy's bandwidth toxic is per connection and
// cannot model an uplink that many connections share (Shopify/toxiproxy#190, #613). Other toxics of toxiproxy's can be
// put behind ours, see Pool.AddToxic. The listener is our own too: toxiproxy's dials inside its accept loop without a
// timeout, tells a toxic nothing of the connection it works for, and leaves goroutines behind when a write
// fails.
//
// # What is modelled
//
//   - Rate: one token bucket per pool and direction, of Config.Up and Config.Down bits per second with a burst
//     of Config.Burst bytes. Connections take turns packet by packet (like fair queueing on a router), so one
//     bulk transfer does not starve the others.
//   - Latency: Config.RTT is the round trip; each direction delays by half of it. Bytes are delayed in a
//     pipeline, in order: latency never limits throughput. Opening a connection costs one round trip.
//   - Cuts: of the whole pool or one node, both ways or one. Nothing crosses, nothing is told to either side: no reset,
//     no end of stream, as on a dead radio link. After healing, what the two TCP stacks still hold crosses at once,
//     where real ones would first wait for their retransmission timers. What is sent to a socket that was closed
//     meanwhile does not: one segment crosses and is answered by a reset. A connection opened during a cut stays half
//     open until the link heals, and is dropped unseen when its client has given up.
//   - Half-closed connections, and resets, which cross the link like data.
//
// Packet loss, and queues that overflow, are not modelled: the link pushes back instead.
//
// # What is counted
//
// Bytes of TCP payload (TLS records with their handshakes, but no TCP/IP headers and no retransmissions), at the
// moment they leave the sending end of the link, per node, class, phase, connection and direction. Bytes that
// were read from a socket and wait for their turn, or for a cut to heal, are not counted before they cross.
//
// # Goroutines
//
// A Proxy has one that accepts; a connection has one that watches over it and those of its two toxiproxy
// links; each toxic of AddToxic adds one for each direction that it is on. Pool.Close ends them all.
package link
