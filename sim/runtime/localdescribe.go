package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/manifests"
	"github.com/weir-edge/weir/impl/nodepool"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// shared are what a pool shares that says nothing else.
var shared = []nodepool.Resource{
	{Version: "v1", Resource: "endpoints"}, {Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
}

// describe writes the NodePool of each pool with Weir, as anyone who operates the cluster would, and lets its nodes be
// heard.
func (s *localSite) describe(ctx context.Context) error {
	if err := s.cloud.Apply(ctx, []byte(manifests.NodePools()+"---\n"+manifests.Pools())); err != nil {
		return fmt.Errorf("install NodePools: %w", err)
	}
	if slices.ContainsFunc(s.pools, func(x *localPool) bool { return x.Places }) {
		if err := s.allowImages(ctx); err != nil {
			return err
		}
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

// replaceAfter is for how long a node is lost until its coordinator is placed again.
const replaceAfter = 20 * time.Second

// allowImages lets weir-manager run coordinators, as anyone who administers the cluster would.
func (s *localSite) allowImages(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{
		"data": map[string]string{contract.CoordinatorImagesKey: coordinatorImage + "\n"},
	})
	if err != nil {
		return err
	}
	maps := s.cloud.Client().CoreV1().ConfigMaps(contract.ManagerNamespace)
	if _, err := maps.Patch(ctx, contract.CoordinatorImages, types.MergePatchType, patch, metav1.PatchOptions{}); err !=
		nil {
		return fmt.Errorf("allow the image of coordinators: %w", err)
	}
	return nil
}

// ownPool is the object of Weir's own beside it: how the pool shares, and where its coordinator is. Where hubs reach
// that over a link they have it by flags.
func (x *localPool) ownPool() (*poolv1.Pool, error) {
	p := &poolv1.Pool{
		TypeMeta:   metav1.TypeMeta{APIVersion: poolv1.GroupVersion.String(), Kind: "Pool"},
		ObjectMeta: metav1.ObjectMeta{Name: x.Name},
	}
	p.Spec.Mode = poolv1.ModeCoordinator
	if x.Mode != Weir {
		p.Spec.Mode = poolv1.ModeLeaderHubs
	}
	if x.lan != nil || x.Mode != Weir {
		return p, nil
	}
	p.Spec.Coordinator = &poolv1.Coordinator{}
	if x.Places {
		p.Spec.Coordinator = &poolv1.Coordinator{
			Image: coordinatorImage, Replicas: int32(max(x.Coordinators, 1)), ReplaceAfter: replaceAfter.String(),
			Nodes: x.NodeNames(),
		}
		return p, nil
	}
	for i := range x.CoordinatorIDs() {
		host, err := x.coordinatorHost(i)
		if err != nil {
			return nil, err
		}
		p.Spec.Coordinator.Servers = append(p.Spec.Coordinator.Servers,
			"https://"+net.JoinHostPort(host, strconv.Itoa(contract.CoordinatorPort)))
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
