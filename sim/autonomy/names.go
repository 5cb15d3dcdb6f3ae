package autonomy

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/sim/routes"
	"github.com/weir-edge/weir/sim/runtime"
)

const (
	dnsService = "kube-dns"
	dnsPrefix  = "coredns-"
	dnsPort    = 53
)

// dnsNodes are those on which CoreDNS runs: a client on the first one asks another node.
func dnsNodes(nodes []string) []string { return nodes[1:3] }

// dnsPods are the pods of CoreDNS by their nodes; none without names.
func (c *column) dnsPods() map[string]string {
	if !c.about.Names {
		return nil
	}
	pods := map[string]string{}
	for _, n := range dnsNodes(c.nodes) {
		pods[n] = dnsPrefix + n
	}
	return pods
}

// podsOf are all pods of a node.
func (c *column) podsOf(node string) []string {
	names := podNames(node, c.about.PodsPerNode)
	if dns, ok := c.dnsPods()[node]; ok {
		names = append(names, dns)
	}
	return names
}

// startProxies starts the kube-proxy of each node.
func (c *column) startProxies(ctx context.Context) error {
	if !c.about.Names {
		return nil
	}
	ids := make([]runtime.PartID, 0, len(c.nodes))
	for _, n := range c.nodes {
		ids = append(ids, runtime.ProxyOf(n))
	}
	return runtime.Start(ctx, c.Site, ids...)
}

// createDNS makes the pods of CoreDNS.
func (c *column) createDNS(ctx context.Context) error {
	for node, name := range c.dnsPods() {
		if _, err := c.admin.CoreV1().Pods(corev1.NamespaceDefault).Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{serviceLabel: dnsService}},
			Spec: corev1.PodSpec{
				NodeName: node, AutomountServiceAccountToken: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](1),
				Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
				Containers: []corev1.Container{{
					Name: "coredns", Image: runtime.DNSImage, ImagePullPolicy: corev1.PullIfNotPresent,
					Args: []string{"-conf", c.machines[node].Corefile},
				}},
			},
		}, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return nil
}

// servicePorts are those of a Service.
func servicePorts(service string) []corev1.ServicePort {
	if service != dnsService {
		return []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(runtime.PodPort)}}
	}
	to := intstr.FromInt32(runtime.DNSPort)
	return []corev1.ServicePort{
		{Name: "dns", Protocol: corev1.ProtocolUDP, Port: dnsPort, TargetPort: to},
		{Name: "dns-tcp", Protocol: corev1.ProtocolTCP, Port: dnsPort, TargetPort: to},
	}
}

// dnsAddress is that of the Service of CoreDNS.
func dnsAddress(ctx context.Context, admin kubernetes.Interface) (string, error) {
	s, err := admin.CoreV1().Services(corev1.NamespaceDefault).Get(ctx, dnsService, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	return s.Spec.ClusterIP, nil
}

// answered reports whether all callers that know Services by their names were answered.
func (l *led) answered() (bool, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, caller := range l.named {
		if _, ok := caller.Seen(); ok {
			n++
		}
	}
	return n == len(l.named), fmt.Sprintf("waiting for callers by name to be answered: %d of %d are", n, len(l.named))
}

// callNamed starts the callers of a node that know Services by their names.
func (l *led) callNamed(ctx context.Context, c *column, node string) {
	services := map[string][]string{}
	for name, pods := range l.pods {
		if name != dnsService {
			services[name] = pods
		}
	}
	for _, kind := range []string{routes.Resolves, routes.Resolved} {
		caller := routes.NewNamed(routes.NamedConfig{
			Node: node, Kind: kind, Proxy: c.machines[node].Proxy, DNS: l.dns, Namespace: corev1.NamespaceDefault,
			Services: services, Servers: slices.Clone(l.pods[dnsService]), Failure: l.failed(c, node), Waits: !l.begun,
		})
		l.callers, l.named = append(l.callers, caller), append(l.named, caller)
		l.wait.Go(func() { caller.Run(ctx) })
	}
}
