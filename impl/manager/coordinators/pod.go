package coordinators

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/weir-edge/weir/impl/contract"
	poolv1 "github.com/weir-edge/weir/impl/pool"
)

// host is where data and certificates are, on the node and in the Pod.
const host = "/var/lib/weir/coordinator/"

// nameOf is the name of the Pod of a pool on a node. Names of both together may be too long for one.
func nameOf(pool, node string) string {
	return fmt.Sprintf("weir-coordinator-%x", sha256.Sum256([]byte(pool+"/"+node)))[:len("weir-coordinator-")+16]
}

// defaultLimit is the memory that a replica may take, if its Pool does not say. Measured (reports/bench): 15 MB idle,
// 94 MB with 5,000 slices of 100 endpoints. What it may be made to take is more: two resources of 128 MiB, and 16 MiB
// of recent changes of each, are all that it takes of a leader by its default flags, 288 MiB. A quarter of that may be
// garbage (process.Headroom), 72 MiB; it is 15 MiB itself; and the pages of etcd's file, which the limit counts, too,
// are given back when others need them. So a leader that lies does not end it, and 137 MiB are left. A pool that shares
// more resources needs 180 MiB more for each.
const defaultLimit = "512Mi"

// memoryLimit is that of a Pool. The API takes no other than a quantity.
func memoryLimit(c *poolv1.Coordinator) resource.Quantity {
	if q, err := resource.ParseQuantity(c.MemoryLimit); err == nil && q.Sign() > 0 {
		return q
	}
	return resource.MustParse(defaultLimit)
}

// args are those of a replica. The addresses of the others are those of its first start: later it is told of others.
func (s *stand) args(r poolv1.Replica) []string {
	all := []string{
		"--nodepool-name=" + s.Name, "--data-dir=" + host + "data", "--certificates-dir=" + host + "certificates",
		"--placement=" + r.Placement,
	}
	if len(s.Replicas) == 1 {
		return all
	}
	state := "new"
	if r.Joins {
		state = "existing"
	}
	all = append(all, "--name="+contract.ReplicaName(r.Node), "--initial-cluster-token="+s.Name+"/"+s.Cluster,
		"--initial-cluster-state="+state)
	for _, o := range s.Replicas {
		u, err := url.Parse(o.Server)
		if err != nil {
			continue
		}
		name := contract.ReplicaName(o.Node)
		all = append(all, "--initial-cluster="+name+"=https://"+net.JoinHostPort(u.Hostname(),
			strconv.Itoa(contract.PeerPort)), "--replica-server="+name+"="+o.Server)
	}
	return all
}

// new is the Pod of a replica.
func (s *stand) new(r poolv1.Replica) *corev1.Pod {
	own, node := s.Own, r.Node
	ports := []corev1.ContainerPort{
		{Name: "api", ContainerPort: contract.CoordinatorPort, HostPort: contract.CoordinatorPort},
	}
	if len(s.Replicas) > 1 {
		ports = append(ports, corev1.ContainerPort{
			Name: "peer", ContainerPort: contract.PeerPort, HostPort: contract.PeerPort,
		})
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: contract.ManagerNamespace, Name: nameOf(own.Name, node),
		Labels: map[string]string{
			contract.ManagedLabel: contract.ManagedBy, contract.NameLabel: contract.CoordinatorPods,
			"app.kubernetes.io/part-of": "weir", contract.NodePoolLabel: own.Name, placementLabel: r.Placement,
		},
		Annotations: map[string]string{contract.BindingAnnotation: "true"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: poolv1.GroupVersion.String(), Kind: "Pool", Name: own.Name, UID: own.UID, Controller: ptr.To(true),
		}},
	}}
	directory := func(name string) corev1.Volume {
		return corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: host + name, Type: ptr.To(corev1.HostPathDirectoryOrCreate)},
			},
		}
	}
	p.Spec = corev1.PodSpec{
		NodeName: node, HostNetwork: true, DNSPolicy: corev1.DNSDefault, PriorityClassName: "system-node-critical",
		RestartPolicy: corev1.RestartPolicyAlways, ImagePullSecrets: s.secrets,
		AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](30),
		Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Volumes:                       []corev1.Volume{directory("data"), directory("certificates")},
		Containers: []corev1.Container{{
			Name: "weir-coordinator", Image: s.image,
			Args:  s.args(r),
			Ports: ports,
			VolumeMounts: []corev1.VolumeMount{
				{Name: "data", MountPath: host + "data"}, {Name: "certificates", MountPath: host + "certificates", ReadOnly: true},
			},
			ReadinessProbe: &corev1.Probe{ // not /readyz: relays are filled when hubs have been told of it
				ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
					Path: "/livez", Port: intstr.FromInt32(contract.CoordinatorPort), Scheme: corev1.URISchemeHTTPS,
				}}, PeriodSeconds: 2, TimeoutSeconds: 3,
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{
					corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
				},
				Limits: corev1.ResourceList{corev1.ResourceMemory: memoryLimit(own.Spec.Coordinator)},
			},
			SecurityContext: &corev1.SecurityContext{ // the hub, which writes the certificates, is root as well
				RunAsUser: ptr.To[int64](0), AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
				Capabilities: &corev1.Capabilities{
					Drop: []corev1.Capability{"ALL"},
				}, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		}},
	}
	return p
}
