package relay

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// Message is a compiled built-in type: what transcoding to JSON needs.
type Message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Type makes empty objects of the compiled type. It is nil if there is none: such objects go out as they are held.
func (r *Builtin) Type() func() Message {
	return messages[wire.Kind{APIVersion: schema.GroupVersion{Group: r.Group, Version: r.Version}.String(), Kind: r.Kind}]
}

// messages are those of what components and people on a node read.
var messages = map[wire.Kind]func() Message{
	{APIVersion: "apps/v1", Kind: "Deployment"}: func() Message {
		return &appsv1.Deployment{}
	},
	{APIVersion: "apps/v1", Kind: "DaemonSet"}: func() Message {
		return &appsv1.DaemonSet{}
	},
	{APIVersion: "apps/v1", Kind: "StatefulSet"}: func() Message {
		return &appsv1.StatefulSet{}
	},
	{APIVersion: "apps/v1", Kind: "ReplicaSet"}: func() Message {
		return &appsv1.ReplicaSet{}
	},
	{APIVersion: "apps/v1", Kind: "ControllerRevision"}: func() Message {
		return &appsv1.ControllerRevision{}
	},
	{APIVersion: "batch/v1", Kind: "Job"}: func() Message { return &batchv1.Job{} },
	{APIVersion: "batch/v1", Kind: "CronJob"}: func() Message {
		return &batchv1.CronJob{}
	},
	{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}: func() Message {
		return &certificatesv1.CertificateSigningRequest{}
	},
	{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}: func() Message {
		return &coordinationv1.Lease{}
	},
	{APIVersion: "v1", Kind: "Pod"}:    func() Message { return &corev1.Pod{} },
	{APIVersion: "v1", Kind: "Node"}:   func() Message { return &corev1.Node{} },
	{APIVersion: "v1", Kind: "Secret"}: func() Message { return &corev1.Secret{} },
	{APIVersion: "v1", Kind: "ConfigMap"}: func() Message {
		return &corev1.ConfigMap{}
	},
	{APIVersion: "v1", Kind: "Service"}: func() Message { return &corev1.Service{} },
	{APIVersion: "v1", Kind: "Endpoints"}: func() Message {
		return &corev1.Endpoints{}
	},
	{APIVersion: "v1", Kind: "Namespace"}: func() Message {
		return &corev1.Namespace{}
	},
	{APIVersion: "v1", Kind: "PersistentVolume"}: func() Message {
		return &corev1.PersistentVolume{}
	},
	{APIVersion: "v1", Kind: "PersistentVolumeClaim"}: func() Message {
		return &corev1.PersistentVolumeClaim{}
	},
	{APIVersion: "v1", Kind: "Event"}: func() Message { return &corev1.Event{} },
	{APIVersion: "v1", Kind: "ServiceAccount"}: func() Message {
		return &corev1.ServiceAccount{}
	},
	{APIVersion: "v1", Kind: "ReplicationController"}: func() Message {
		return &corev1.ReplicationController{}
	},
	{APIVersion: "v1", Kind: "LimitRange"}: func() Message {
		return &corev1.LimitRange{}
	},
	{APIVersion: "v1", Kind: "ResourceQuota"}: func() Message {
		return &corev1.ResourceQuota{}
	},
	{APIVersion: "v1", Kind: "PodTemplate"}: func() Message {
		return &corev1.PodTemplate{}
	},
	{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}: func() Message {
		return &discoveryv1.EndpointSlice{}
	},
	{APIVersion: "events.k8s.io/v1", Kind: "Event"}: func() Message { return &eventsv1.Event{} },
	{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"}: func() Message {
		return &networkingv1.Ingress{}
	},
	{APIVersion: "networking.k8s.io/v1", Kind: "IngressClass"}: func() Message {
		return &networkingv1.IngressClass{}
	},
	{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}: func() Message {
		return &networkingv1.NetworkPolicy{}
	},
	{APIVersion: "networking.k8s.io/v1", Kind: "ServiceCIDR"}: func() Message {
		return &networkingv1.ServiceCIDR{}
	},
	{APIVersion: "networking.k8s.io/v1", Kind: "IPAddress"}: func() Message {
		return &networkingv1.IPAddress{}
	},
	{APIVersion: "node.k8s.io/v1", Kind: "RuntimeClass"}: func() Message {
		return &nodev1.RuntimeClass{}
	},
	{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}: func() Message {
		return &policyv1.PodDisruptionBudget{}
	},
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}: func() Message { return &rbacv1.Role{} },
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}: func() Message {
		return &rbacv1.RoleBinding{}
	},
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}: func() Message {
		return &rbacv1.ClusterRole{}
	},
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}: func() Message {
		return &rbacv1.ClusterRoleBinding{}
	},
	{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"}: func() Message {
		return &resourcev1.ResourceClaim{}
	},
	{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimTemplate"}: func() Message {
		return &resourcev1.ResourceClaimTemplate{}
	},
	{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"}: func() Message {
		return &resourcev1.ResourceSlice{}
	},
	{APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass"}: func() Message {
		return &resourcev1.DeviceClass{}
	},
	{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}: func() Message {
		return &schedulingv1.PriorityClass{}
	},
	{APIVersion: "storage.k8s.io/v1", Kind: "CSIDriver"}: func() Message {
		return &storagev1.CSIDriver{}
	},
	{APIVersion: "storage.k8s.io/v1", Kind: "CSINode"}: func() Message {
		return &storagev1.CSINode{}
	},
	{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"}: func() Message {
		return &storagev1.StorageClass{}
	},
	{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachment"}: func() Message {
		return &storagev1.VolumeAttachment{}
	},
	{APIVersion: "storage.k8s.io/v1", Kind: "CSIStorageCapacity"}: func() Message {
		return &storagev1.CSIStorageCapacity{}
	},
	{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttributesClass"}: func() Message {
		return &storagev1.VolumeAttributesClass{}
	},
}
