package runtime

import (
	"context"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-edge/weir/impl/contract"
)

const systemNamespace = metav1.NamespaceSystem

// onPools keeps CoreDNS on nodes of pools.
const onPools = `{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":
{"requiredDuringSchedulingIgnoredDuringExecution":
{"nodeSelectorTerms":[{"matchExpressions":[{"key":"` + contract.NodePoolLabel + `",%s}]}]}}}}}}}`

// corednsPlace is where CoreDNS runs: in pools, where it reads through hubs and links; but in those without a link if
// there are any, since then the others get lost, and a scenario has pods of its own there.
func (s *kindSite) corednsPlace() string {
	for _, p := range s.topology.Pools {
		if p.Unlinked {
			return fmt.Sprintf(onPools, `"operator":"In","values":["`+p.Name+`"]`)
		}
	}
	return fmt.Sprintf(onPools, `"operator":"Exists"`)
}

// settle leads the kubelets of nodes with a hub there, gives all nodes a pod network, and walls them in. Then hubs are
// off: their nodes are Ready when these have been started.
func (s *kindSite) settle(ctx context.Context) error {
	if err := s.joinPools(ctx); err != nil {
		return fmt.Errorf("join the nodes: %w", err)
	}
	if err := s.openDoors(ctx, false); err != nil {
		return err
	}
	if err := s.installCNI(ctx); err != nil {
		return fmt.Errorf("install the pod network: %w", err)
	}
	apps := s.cloud.Client().AppsV1()
	if _, err := apps.Deployments(systemNamespace).Patch(ctx, "coredns", types.StrategicMergePatchType,
		[]byte(s.corednsPlace()), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("place CoreDNS: %w", err)
	}
	// It serves volumes, which no scenario has, and its election would cross the link of whichever node it is on.
	err := apps.Deployments("local-path-storage").Delete(ctx, "local-path-provisioner", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove the volume provisioner: %w", err)
	}
	if err := s.waitPods(ctx); err != nil { // pods that start now are led to hubs
		return err
	}
	return s.openDoors(ctx, true)
}

// openDoors gives nodes with or without a hub their doors.
func (s *kindSite) openDoors(ctx context.Context, hubs bool) error {
	err := s.each(ctx, func(ctx context.Context, m *machine) error {
		if m.atCloud() || hubs != (m.hub != nil) {
			return nil
		}
		return s.installDoor(ctx, m)
	})
	if err != nil {
		return fmt.Errorf("install the doors of the nodes: %w", err)
	}
	return nil
}

// waitPods waits until all that the cluster itself runs has started.
func (s *kindSite) waitPods(ctx context.Context) error {
	return s.wait(ctx, "the cluster's own pods run", func() (bool, string, error) {
		daemons, err := s.cloud.Client().AppsV1().DaemonSets(systemNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		dns, err := s.cloud.Client().AppsV1().Deployments(systemNamespace).Get(ctx, "coredns", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		var not []string
		for _, d := range daemons.Items {
			if st := d.Status; st.ObservedGeneration != d.Generation || int(st.NumberReady) != len(s.byNode)+1 {
				not = append(not, d.Name)
			}
		}
		if st := dns.Status; st.ObservedGeneration != dns.Generation || st.UpdatedReplicas != *dns.Spec.Replicas ||
			st.AvailableReplicas != st.UpdatedReplicas || st.Replicas != st.UpdatedReplicas {
			not = append(not, dns.Name)
		}
		return len(not) == 0 && len(daemons.Items) > 1, fmt.Sprintf("not %v", not), nil
	})
}

// installCNI installs kind's own, but without the address of the apiserver that kind would put in: it calls the
// Service, as pods do.
func (s *kindSite) installCNI(ctx context.Context) error {
	manifest, err := s.control.Exec(ctx, "cat", "/kind/manifests/default-cni.yaml")
	if err != nil {
		return err
	}
	return s.cloud.Apply(ctx, []byte(strings.ReplaceAll(manifest, "{{ .PodSubnet }}", podSubnet)))
}

// WaitReady waits until all nodes of pools are Ready, with progress.
func (s *kindSite) WaitReady(ctx context.Context) error {
	return s.wait(ctx, "nodes are Ready", func() (bool, string, error) {
		list, err := s.cloud.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: contract.NodePoolLabel})
		if err != nil {
			return false, "", err
		}
		var not []string
		for _, n := range list.Items {
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
					not = append(not, n.Name)
				}
			}
		}
		return len(not) == 0 && len(list.Items) == len(s.byNode),
			fmt.Sprintf("%d of %d, not %v", len(list.Items)-len(not), len(s.byNode), not), nil
	})
}

// Exec runs a command on a node and returns what it wrote to standard output.
func (s *kindSite) Exec(ctx context.Context, node string, command ...string) (string, error) {
	m := s.byNode[node]
	if m == nil {
		return "", fmt.Errorf("there is no node %q", node)
	}
	return m.Exec(ctx, command...)
}

// Follow runs a command on a node and passes on what it writes, see docker.Container.
func (s *kindSite) Follow(ctx context.Context, node string, stdout io.Writer, command ...string) error {
	m := s.byNode[node]
	if m == nil {
		return fmt.Errorf("there is no node %q", node)
	}
	return m.Follow(ctx, stdout, command...)
}
