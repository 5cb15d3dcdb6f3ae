// Package reverse is the way from the cloud into a pool behind NAT. The hub that leads a pool connects to weir-gate,
// and the gate opens connections into the pool over that one: kube-apiserver reaches kubelets so, for logs, exec,
// port-forward and attach, and Prometheus reaches what it scrapes.
//
//	Leader  in a hub: connects to one gate, and dials into the pool for it
//	Reach   in a hub: what it may dial; pure
//	Ways    in a gate: the connections of leaders, and Dial over them
//	Front   in a gate: HTTP CONNECT, for kube-apiserver and Prometheus
//
// It does not know who leads, who calls or which node is of which pool. Its users say that.
//
// # The protocol
//
// The leader opens a TLS connection to the gate with its client certificate, and sends
//
//	POST /weir/v1/reverse HTTP/1.1
//	Connection: Upgrade
//	Upgrade: weir-reverse
//
// After the answer 101 the roles are exchanged (RFC 9110, section 7.8): the gate is the client and speaks first,
// HTTP/2 with prior knowledge (RFC 9113). Both ends are those of net/http. There is no second TLS: the gate knows the
// hub by its certificate, the hub the gate by its own. So nothing between the two may end TLS.
//
// The gate first sends GET /weir/v1/reverse. The answer 204 says that the leader serves; the connection counts from
// then on. A hub that does not answer never takes the place of one that does.
//
// Each connection into the pool is one request CONNECT host:port (RFC 9113, section 8.5), with the header Weir-Node if
// the address is one of a node. The leader believes neither, and finds out by itself what it may dial. It
// answers 200, or
//
//	403  Reach does not allow the address
//	429  the leader has as many connections as it may
//	502  the address could not be dialed
//	504  the address has not answered in time
//
// with one line of text. What goes into the pool is the body of the request, and its end is FIN. What comes out is
// the body of the answer, in pieces: two bytes with a length, high byte first, and so many bytes, 16382 at most. A
// piece of length 0 is FIN. net/http cannot end an answer and read on, so the end of the body cannot be FIN. A body
// that ends without that piece has been cut off; the trailer Weir-End says why. Each direction so ends by itself, as
// in TCP. What was written before Close is still sent.
//
// # What is dialed
//
// Span names where a connection may go: a network and its ports, as spec.reach of a Pool has them. weir-manager reads
// spec.reach, signs it in the directory of the pool, and the leader of the pool dials by it. All three have this one
// type, and one list of what is refused, Forbidden.
//
// A leader dials the port of the kubelet at InternalIPs of the pool's nodes, and what spec.reach of the Pool names.
// It never dials what Forbidden names, even if spec.reach does: loopback, link-local, unspecified, multicast and
// reserved addresses, metadata of clouds, and IPv6 addresses that have an IPv4 address in them. Addresses of gates
// are refused, too. A name is refused: what is checked is the very value that is dialed, so no resolver has a say. A
// change of the reach counts for the next connection; those that are open last.
//
// A Front dials addresses of pools through their leaders only. All others it dials straight if Straight allows, names
// as well. The rules are then asked about each address that is really dialed. A name that leads to an address of a
// pool, to what Forbidden names or to the gate itself is refused.
//
// # Leaders change
//
// A pool may have four connections at most. A new stream goes over the newest one, and open streams stay on theirs. A
// hub that leads no more ends its own connection. One that still believes that it leads is as good as another: what
// it dials is the same. Dial waits for Gap where the last one has just gone. If the connection of a leader breaks, all
// that it carried ends with an Error of kind Lost, and the Front resets its clients, so nobody takes it for a good end.
// Nothing is carried on elsewhere: exec ends with an error, and kube-apiserver ends logs -f as if all had been said, as
// ever when it loses a kubelet. A person calls them again.
//
// # Several gates
//
// Replicas of a gate may be behind one address, and each is asked by kube-apiserver. So a leader keeps one connection
// to each: it runs as many Leaders as there are replicas. Each gate has a name of its own, in the header Weir-Gate of
// its 101. LeaderConfig.Take refuses one to which there is a connection, before it counts, and the Leader tries again.
// That is how agents of konnectivity find all their servers.
//
// A Leader that has lost its connection tries again after 0.2 s to 30 s, with jitter, or when the gate has said. The
// gate pings after 30 s of silence, the leader after 45 s. An end that does not answer within 15 s is gone. So a NAT
// has a packet every 30 s, which costs some 300 bytes a minute.
//
// # Bounds
//
// The figures are defaults.
//
//	connections        256 into a pool (429), 1024 into all pools and 1024 straight (503)
//	bytes that wait    256 KiB at each end for each connection into a pool, the window of its stream
//	buffers            16 KiB for each direction at each end
//	time to dial       10 s at the leader and straight, 15 s at the gate
//	time to upgrade    10 s for each step of it, four at once for each pool (429)
//	headers            16 KiB
//	silence            none, while both directions are open; 5 min after one of them has ended
//
// The window of a connection to a gate has room for the windows of all its streams. So a stream that nobody reads
// holds its own window, and never takes it from others. A stream carries one window in each round trip: 640 kB/s at
// 400 ms. exec and logs -f may be silent for hours. Ends that are gone are found by keepalive of TCP and by the
// pings.
//
// A hub is trusted to lead its pool, and with nothing else. What it sends beyond its windows, too long a header, a
// frame of a type that no server sends, or a piece that is too long ends the stream or the connection. A hub may name
// frames of 16 MiB as what it takes: net/http has a buffer of 512 KiB then for each request to it. Its texts are cut
// to 400 bytes of printable ASCII before anyone sees them.
//
// # Beside other traffic
//
// The connection is one of its own, so what it carries never stands before a heartbeat or a change in a queue of this
// process. The link is shared, though, and TCP fills the queue of a modem with seconds of what it sends. So both ends
// hold bytes back: so much is on its way as the link takes in the shortest round trip and 100 ms, and two segments at
// least. Others that fill the link have the larger part of it. The kernel is given no more than 16 KiB that the link
// has not taken. In one connection the streams take turns by frames of 16 KiB, and by less on a slow link.
//
// # Front
//
// Clients speak HTTP/1.1. kube-apiserver's egress selector (proxyProtocol HTTPConnect) offers nothing else.
// Prometheus offers h2 to a proxy unless enable_http2 is false, and speaks HTTP/1.1 all the same: the port for
// CONNECT must not choose h2. A refusal has its reason in the status line too, because these clients show nothing
// else. Each connection is one line of the log: user, address, pool, bytes, duration, end.
//
// # Goroutines
//
// Leader.Run blocks until its context ends, and leaves none behind. Ways has one for each connection of a leader and
// for each stream, besides those of net/http; Ways.Close ends them and waits. A Front uses the goroutine of the
// request and one more; Front.Close ends them and waits. Close the Front first.
package reverse
