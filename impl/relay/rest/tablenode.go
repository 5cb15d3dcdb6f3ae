package rest

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/relay"
)

var nodeTable = &tablePrinter{
	columns: []metav1.TableColumnDefinition{
		column("Name", metaDoc["name"]),
		column("Status", "The status of the node"),
		column("Roles", "The roles of the node"),
		column("Age", metaDoc["creationTimestamp"]),
		column("Version", corev1.NodeSystemInfo{}.SwaggerDoc()["kubeletVersion"]),
		wide("Internal-IP", corev1.NodeStatus{}.SwaggerDoc()["addresses"]),
		wide("External-IP", corev1.NodeStatus{}.SwaggerDoc()["addresses"]),
		wide("OS-Image", corev1.NodeSystemInfo{}.SwaggerDoc()["osImage"]),
		wide("Kernel-Version", corev1.NodeSystemInfo{}.SwaggerDoc()["kernelVersion"]),
		wide("Container-Runtime", corev1.NodeSystemInfo{}.SwaggerDoc()["containerRuntimeVersion"]),
	},
	cells: func(m relay.Message, now time.Time) []any {
		n := m.(*corev1.Node)
		info := n.Status.NodeInfo
		kernel := cmp.Or(info.KernelVersion, "<unknown>")
		if info.Architecture != "" {
			kernel += " (" + info.Architecture + ")"
		}
		return []any{
			n.Name, nodeStatus(n), cmp.Or(strings.Join(nodeRoles(n), ","), "<none>"), age(n.CreationTimestamp, now),
			info.KubeletVersion,
			nodeAddress(n, corev1.NodeInternalIP), nodeAddress(n, corev1.NodeExternalIP), cmp.Or(info.OSImage, "<unknown>"),
			kernel, cmp.Or(info.ContainerRuntimeVersion, "<unknown>"),
		}
	},
}

func nodeStatus(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions { // the last one counts
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			status = "Ready"
		default:
			status = "NotReady"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

func nodeRoles(n *corev1.Node) (roles []string) {
	for name, value := range n.Labels {
		role, ok := strings.CutPrefix(name, "node-role.kubernetes.io/")
		if name == "kubernetes.io/role" {
			role, ok = value, true
		}
		if ok && role != "" {
			roles = append(roles, role)
		}
	}
	slices.Sort(roles)
	return slices.Compact(roles)
}

func nodeAddress(n *corev1.Node, kind corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == kind {
			return a.Address
		}
	}
	return "<none>"
}
