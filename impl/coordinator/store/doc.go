// Package store is the coordinator's durable memory: an etcd inside the process, in a directory that one process at a
// time may use. It has a single member, or one for each replica of the coordinator.
//
// It holds what is decided in the pool (Leases), never copies of what the cloud holds: etcd cannot keep foreign
// resourceVersions. It listens on unix sockets inside its directory only, so nothing of it is reachable over the
// network, nor by other users of the machine.
//
// A new etcd draws an incarnation, a random name that lives and dies with its data. Terms of leaders carry it: after a
// lost disk the versions of Leases begin again, and only the incarnation tells an old leader from a new one.
//
// Its database has a quota. When half of that is used Tend throws the history away, and at the quota, where etcd takes
// no writes, it makes room and has it take them again.
//
// Lock takes the directory; Open starts etcd and its goroutines, Close ends them all. What etcd cannot survive, a full
// or broken disk above all, makes it end; Failed tells, and the process should end too.
//
// # The replicas
//
// They are those that the flags name and, if weir-manager placed the coordinator, those that the configuration of the
// pool names.
//
//	Replica    one of them: its name, and where it is
//	Replicas   all of them as they are now, and the others as sources
//	Placement  one stay of a replica on a node: whose data counts, and whether the pool has others in its place
//	Fed        which of them reads the leader
//
// # The connections
//
// etcd can do TLS with its peers by itself. But it reads the authorities when it starts, goes by the machine's clock,
// and knows no denylist. So it is not let near the network: the mesh is between. What comes in over TLS at the address
// of this replica is handed to etcd's handler (Serve). What etcd sends goes through a socket for each other replica,
// and from there over TLS to the address of that replica. Both ways the caller of this package says who counts
// (MeshConfig.Verify), for each connection again, and again for all that are open when something has changed
// (MeshConfig.Changes) and every few seconds. One that is no longer valid ends with all that is open over it. etcd
// connects again at once.
//
// What raft had said over a connection that breaks is lost, and a write fails. So when one of two replicas has another
// certificate, the streams between them move to a new connection first (out.follow), long before the old certificate
// ends or its authority is no longer valid.
//
// # Sockets
//
// The name of an etcd member's address is the same at all members. So it tells the replica alone: unix://<name>:<port>
// (URL). etcd takes that for a file in the directory where the process works, so Mesh.Start makes MeshConfig.Dir that
// directory. Nobody but the owner may enter it: a socket asks nobody who he is.
//
// # Limits of the mesh
//
// Connections over which nobody has proved anything are bounded in number and time (authz.Callers). A replica that
// does not answer a ping is cut off after twice MeshSilence.
//
// # Goroutines
//
// NewMesh starts none; it takes the port. Mesh.Start starts some, and Mesh.Close ends them.
package store
