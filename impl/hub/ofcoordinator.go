package hub

import (
	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
)

// bindOfCoordinator declares the flags of a hub on whose node the pool's coordinator runs.
func (c *Config) bindOfCoordinator(f *cli.Flags) {
	f.StringVar(&c.EnrolCoordinatorDir, "enrol-coordinator-dir", "",
		"the pool's coordinator, or a replica of it, runs on this node: a directory, on a disk that survives restarts, in "+
			"which the hub keeps the coordinator's certificates; it asks "+
			"weir-manager for them, who wants the label "+contract.CoordinatorLabel+
			" of the Node, and renews them; the coordinator's --certificates-dir is the same")
	f.StringArrayVar(&c.EnrolCoordinatorHosts, "enrol-coordinator-host", nil,
		"IP address or DNS name of that coordinator, one of the Node's addresses; repeatable; default: that of "+
			"--coordinator-server if there is one")
	f.StringVar(&c.CoordinatorReplica, "coordinator-replica", "",
		"name of that coordinator among its replicas, which is the value of the label and its --name: the hub asks for the "+
			"certificate by which the others know it, too; "+
			contract.ManagedReplica+
			": weir-manager runs the coordinator as a Pod, and the hub asks while it hears that one is to be on this node")
}

// managesReplica reports whether weir-manager runs the coordinator of this node, if there is one.
func (s *settings) managesReplica() bool { return s.CoordinatorReplica == contract.ManagedReplica }
