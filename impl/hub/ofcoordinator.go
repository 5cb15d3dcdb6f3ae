package hub

import (
	"context"
	"net/http"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/enrol"
	"github.com/weir-edge/weir/impl/pki"
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

// buildBeside gets the certificates of the coordinator on this node, which has no way to the cloud. It reads them from
// its files.
func (h *Hub) buildBeside() error {
	for _, kind := range h.kindsOfCoordinator() {
		c := enrol.Config{
			Identity: pki.Must(kind), Subject: h.ofCoordinator(), Dir: h.EnrolCoordinatorDir, Trusted: h.trusted.List,
			Signs: h.trusted.Signer, Idle: h.managesReplica(),
		}
		k, err := h.keeper(c, func(*enrol.Keeper) http.RoundTripper { return h.asks() })
		if err != nil {
			return cli.Usage("--enrol-coordinator-dir", h.EnrolCoordinatorDir,
				"a directory that this process may make and write: "+err.Error())
		}
		h.beside = append(h.beside, k)
	}
	return nil
}

// managesReplica reports whether weir-manager runs the coordinator of this node, if there is one.
func (s *settings) managesReplica() bool { return s.CoordinatorReplica == contract.ManagedReplica }

// awaitReplica asks for the certificates of the coordinator while the pool is told that one is to be on this node,
// until ctx ends.
func (h *Hub) awaitReplica(ctx context.Context) error {
	for ctx.Err() == nil {
		changed := h.directory.Changed()
		told := h.directory.Now()
		_, here := told.Placed(h.NodeName)
		for _, k := range h.beside {
			k.Want(here && (k.Identity.Kind == pki.Coordinator || len(told.Replicas) > 1))
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return nil
}
