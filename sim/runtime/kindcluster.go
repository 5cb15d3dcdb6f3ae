package runtime

import (
	"context"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/cloud"
	"github.com/weir-edge/weir/sim/kind"
	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	apiPort   = 6443 // of the apiserver inside the network
	podSubnet = "10.244.0.0/16"
)

// create creates the cluster of the site and learns where its nodes are.
func (s *kindSite) create(ctx context.Context) error {
	s.control = &machine{Container: s.run.Control(), node: string(s.run.Control()), network: s.run.Network}
	config := &v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Networking: v1alpha4.Networking{
			IPFamily: v1alpha4.IPv4Family, PodSubnet: podSubnet, DisableDefaultCNI: true,
		},
		KubeadmConfigPatches: s.kubeadmPatches(),
		// With it weir node join makes a hub the mirror of its node.
		ContainerdConfigPatches: []string{kind.RegistriesPatch},
		// Lists of flags are added to: a merge would replace those that kind gives.
		KubeadmConfigPatchesJSON6902: kubeadmFlags(s.topology.timers()),
		Nodes:                        []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole, Image: s.image}},
	}
	for _, p := range s.topology.Pools {
		if p.Bare {
			continue
		}
		for _, name := range p.NodeNames() {
			config.Nodes = append(config.Nodes, s.worker(p, name))
		}
	}
	if err := s.run.Create(ctx, config, s.progress); err != nil {
		return err
	}
	return s.each(ctx, func(ctx context.Context, m *machine) error { return m.locate(ctx) })
}

// kubeadmPatches let the apiserver be called by the address of the links, and kubelets start on cgroup v1.
func (s *kindSite) kubeadmPatches() []string {
	return []string{
		"kind: ClusterConfiguration\napiServer:\n  certSANs: [localhost, 127.0.0.1, " + s.run.Network.Gateway + "]\n",
		"kind: KubeletConfiguration\nfailCgroupV1: false\n" + kubeletTimers(s.topology.timers()),
	}
}

// worker describes the next worker to kind. It has the programs of a release, and the folder of logs, under the paths
// that they have here.
func (s *kindSite) worker(p Pool, name string) v1alpha4.Node {
	s.byNode[name] = &machine{Container: s.run.Worker(len(s.byNode) + 1), node: name, pool: p, network: s.run.Network}
	n := v1alpha4.Node{
		Role: v1alpha4.WorkerRole, Image: s.image,
		Labels:               map[string]string{contract.NodePoolLabel: p.Name},
		KubeadmConfigPatches: []string{"kind: JoinConfiguration\nnodeRegistration:\n  name: " + name + "\n"},
		ExtraMounts:          []v1alpha4.Mount{{HostPath: s.logDir, ContainerPath: s.logDir}},
	}
	if !p.Zoneless {
		n.Labels[corev1.LabelTopologyZone] = p.Name
	}
	if p.Mode != Stock {
		for _, command := range []string{parts.HubCommand, parts.OperatorCommand} {
			path := s.commands[command]
			n.ExtraMounts = append(n.ExtraMounts, v1alpha4.Mount{HostPath: path, ContainerPath: path, Readonly: true})
		}
	}
	return n
}

// attach makes the cluster's control plane the cloud of the site.
func (s *kindSite) attach(ctx context.Context) error {
	admin, err := s.run.Admin()
	if err != nil {
		return err
	}
	var pem [2]string
	for i, file := range []string{"ca.crt", "ca.key"} {
		if pem[i], err = s.control.Exec(ctx, "cat", "/etc/kubernetes/pki/"+file); err != nil {
			return fmt.Errorf("authority of the cluster: %w", err)
		}
	}
	ca, err := testca.LoadAuthority([]byte(pem[0]+"\n"), []byte(pem[1]+"\n"))
	if err != nil {
		return err
	}
	s.cloud, err = cloud.Attach(ctx, s.control.address, apiPort, admin, ca)
	return err
}

// near implements ground: links end where this machine is in the network.
func (s *kindSite) near(string) string { return net.JoinHostPort(s.run.Network.Gateway, "0") }

// Down implements Site.
func (s *kindSite) Down(ctx context.Context) error {
	var all []error
	s.down.Do(func() {
		for _, id := range s.partIDs {
			if p, ok := s.parts[id].(*kindPart); ok && p.goesWithCluster() {
				p.forget()
			}
		}
		all = append(all, s.stopParts(ctx))
		for _, id := range s.partIDs {
			if p, ok := s.parts[id].(*kindPart); ok {
				p.forget()
			}
		}
		all = append(all, s.remove(ctx))
		for _, p := range s.pools {
			p.close()
		}
		if s.spawner != nil {
			all = append(all, s.spawner.Close())
		}
		for _, b := range s.blocks {
			b.Release()
		}
	})
	return errors.Join(all...)
}

func (s *kindSite) remove(ctx context.Context) error {
	if s.run == nil {
		return nil
	}
	return s.run.Remove(ctx)
}
