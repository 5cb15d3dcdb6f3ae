// Package mesh is for a coordinator that has several replicas: it knows which they are, and connects their etcd
// members.
//
// # The replicas
//
// They are those that the flags name and, if weir-manager placed the coordinator, those that the configuration of the
// pool names.
//
//	Member     one of them: its name, and where it is
//	Set        all of them as they are now, and the others as sources
//	Placement  one stay of a replica on a node: whose data counts, and whether the pool has others in its place
//	Fed        which of them reads the leader
//
// # The connections
//
// etcd can do TLS with its peers by itself. But it reads the authorities when it starts, goes by the machine's clock,
// and knows no denylist. So it is not let near the network: the mesh is between. What comes in over TLS at the address
// of this replica is handed to etcd's handler (Serve). What etcd sends goes through a socket for each other replica,
// and from there over TLS to the address of that replica. Both ways the caller of this package says who counts
// (Config.Verify), for each connection again, and again for all that are open when something has changed
// (Config.Changes) and every few seconds. One that is no longer valid ends with all that is open over it. etcd connects
// again at once.
//
// What raft had said over a connection that breaks is lost, and a write fails. So when one of two replicas has another
// certificate, the streams between them move to a new connection first (out.follow), long before the old certificate
// ends or its authority is no longer valid.
//
// # Sockets
//
// The name of an etcd member's address is the same at all members. So it tells the replica alone: unix://<name>:<port>
// (URL). etcd takes that for a file in the directory where the process works, so Start makes Config.Dir that directory.
// Nobody but the owner may enter it: a socket asks nobody who he is.
//
// # Limits
//
// Connections over which nobody has proved anything are bounded in number and time (authz.Callers). A replica that
// does not answer a ping is cut off after twice Silence.
//
// # Goroutines
//
// New starts none; it takes the port. Start starts some, and Close ends them.
package mesh
