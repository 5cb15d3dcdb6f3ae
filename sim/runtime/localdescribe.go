package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// shared are what a pool shares that says nothing else.
var shared = []nodepool.Resource{
	{Version: "v1", Resource: "endpoints"}, {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
}

// describe writes the NodePool of each pool with Weir, as whoever operates the cluster would, and lets its nodes be heard.
func (s *localSite) describe(ctx context.Context) error {
	if err := s.cloud.Apply(ctx, []byte(manifests.NodePools()+"---\n"+manifests.Pools())); err != nil {
		return fmt.Errorf("install NodePools: %w", err)
	}
	var beating context.Context
	s.pulse, beating = newPulse()
	for _, x := range s.pools {
		if x.Mode == Stock {
			continue
		}
		own, err := x.ownPool()
		if err != nil {
			return err
		}
		for _, o := range []any{own, x.nodePool()} { // in this order: a NodePool alone asks for leader hubs
			data, err := json.Marshal(o)
			if err != nil {
				return err
			}
			if err := s.cloud.Apply(ctx, data); err != nil {
				return fmt.Errorf("describe pool %s: %w", x.Name, err)
			}
		}
		if x.Kubelets {
			continue
		}
		for _, name := range x.NodeNames() {
			dir, err := s.spawner.Scratch(x.Name, name, "pulse")
			if err != nil {
				return err
			}
			config, _, err := x.kubeletConfig(dir, name, 0)
			if err != nil {
				return err
			}
			s.pulse.beat(beating, config, name, s.topology.timers().Lease)
		}
	}
	return nil
}

// ownPool is the object of Weir's own beside it: how the pool shares, and where its coordinator is. Where hubs reach that over a link they have it by flags.
func (x *localPool) ownPool() (*poolv1.Pool, error) {
	p := &poolv1.Pool{TypeMeta: metav1.TypeMeta{APIVersion: poolv1.GroupVersion.String(), Kind: "Pool"}, ObjectMeta: metav1.ObjectMeta{Name: x.Name}}
	p.Spec.Mode = poolv1.ModeCoordinator
	if x.Mode != Weir {
		p.Spec.Mode = poolv1.ModeLeaderHubs
	}
	if x.lan != nil || x.Mode != Weir {
		return p, nil
	}
	p.Spec.Coordinator = &poolv1.Coordinator{}
	for i := range x.CoordinatorIDs() {
		host, err := x.coordinatorHost(i)
		if err != nil {
			return nil, err
		}
		p.Spec.Coordinator.Servers = append(p.Spec.Coordinator.Servers, "https://"+net.JoinHostPort(host, strconv.Itoa(contract.CoordinatorPort)))
	}
	return p, nil
}

// nodePool is the object that describes a pool.
func (x *localPool) nodePool() *nodepool.NodePool {
	return &nodepool.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: nodepool.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: x.Name},
		Spec: nodepool.Spec{
			Type: nodepool.Edge, InterConnectivity: true, EnableLeaderElection: true, LeaderElectionStrategy: nodepool.Random,
			LeaderReplicas: int32(max(x.LeaderHubs, 1)), PoolScopeMetadata: shared,
		},
	}
}
