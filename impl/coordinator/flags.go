package coordinator

import (
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/scope"
)

// bind declares the flags of weir-coordinator.
func (c *Config) bind(f *cli.Flags) {
	c.Linger = scope.DefaultLinger
	f.StringVar(&c.NodePoolName, "nodepool-name", "", "name of the pool; required")
	f.StringVar(&c.BindAddress, "bind-address", "0.0.0.0", "IP address that the API is served on")
	f.IntVar(&c.SecurePort, "secure-port", contract.CoordinatorPort, "TLS port of the API; 0 takes any free one")
	f.StringVar(&c.DataDir, "data-dir", "",
		"directory of the pool's Leases and of what the relays hold, on a disk that survives restarts; one process at a "+
			"time; required")
	f.StringVar(&c.CertificatesDir, "certificates-dir", "",
		"directory in which the hub of this node keeps this coordinator's certificates and the pool's authorities, its "+
			"--enrol-coordinator-dir; the coordinator waits until they are there, and reads them again when they change; "+
			"required")
	f.BoolVar(&c.LeadersOnly, "leaders-only", false,
		"only hubs lead whose certificate has the organization "+contract.LeaderGroup+
			": weir-manager gives it to Nodes with the label "+contract.LeaderLabel+"=true")
	f.StringVar((*string)(&c.Placement), "placement", "",
		"name of this stay on this node, which weir-manager gives: data of another one in --data-dir is removed, and when "+
			"the pool is told of others in its place, this one elects nobody")
	f.StringArrayVar(&c.PoolScopeResources, "pool-scope-resources", defaultResources(),
		"resource.version.group that the leader feeds while a hub reads it here, each node all of it (never Secrets); the "+
			"same as at the hubs; "+
			"what the pool is told in the cloud counts above it; "+
			"repeatable; a custom resource needs its kind, as in widgets.v1.example.com=Widget; +resource.version.group is "+
			"relayed though nobody reads it")
	f.Int64Var(&c.RingBytes, "ring-bytes", 16<<20, "bytes of recent changes kept per resource, for clients that resume")
	f.Int64Var(&c.RelayMaxBytes, "relay-max-bytes", 128<<20,
		"bytes per resource that are taken from a leader or another replica, with 1 KiB beside each object")
	f.StringVar(&c.Name, "name", "", "name of this replica, one of --initial-cluster; only if the pool has three")
	f.StringArrayVar(&c.InitialCluster, "initial-cluster", nil,
		"name=https://host:port where a replica meets the others (the peer URL of its etcd); once for each of the three, "+
			"the same for all; none: this is the only one")
	f.StringArrayVar(&c.ReplicaServers, "replica-server", nil,
		"name=https://host:port where a replica serves the API; once for each of --initial-cluster")
	f.StringVar(&c.ClusterState, "initial-cluster-state", ClusterNew,
		"what a replica without data does: "+ClusterNew+", it is taken in again, or begins with the others if none serves; "+
			ClusterExisting+", it waits until it is taken in")
	f.StringVar(&c.ClusterToken, "initial-cluster-token", "",
		"name of the replicas together: those of another name are never taken for some of them; default: by the name "+
			"of the pool")
	f.DurationVar(&c.FreshWithin, "fresh-within", 30*time.Second,
		"a resource is ready while its feed has shown a sign of life within this time")
}
