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

	"github.com/weir-edge/weir/impl/relay/wire"
)

// message is a compiled built-in type: what transcoding to JSON needs.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// compiledTypes are the compiled types of what components and people on a node read. What is not here goes out as it is held.
var compiledTypes = map[wire.Kind]func() message{
	{APIVersion: "apps/v1", Kind: "Deployment"}:                               func() message { return &appsv1.Deployment{} },
	{APIVersion: "apps/v1", Kind: "DaemonSet"}:                                func() message { return &appsv1.DaemonSet{} },
	{APIVersion: "apps/v1", Kind: "StatefulSet"}:                              func() message { return &appsv1.StatefulSet{} },
	{APIVersion: "apps/v1", Kind: "ReplicaSet"}:                               func() message { return &appsv1.ReplicaSet{} },
	{APIVersion: "apps/v1", Kind: "ControllerRevision"}:                       func() message { return &appsv1.ControllerRevision{} },
	{APIVersion: "batch/v1", Kind: "Job"}:                                     func() message { return &batchv1.Job{} },
	{APIVersion: "batch/v1", Kind: "CronJob"}:                                 func() message { return &batchv1.CronJob{} },
	{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}: func() message { return &certificatesv1.CertificateSigningRequest{} },
	{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}:                     func() message { return &coordinationv1.Lease{} },
	{APIVersion: "v1", Kind: "Pod"}:                                           func() message { return &corev1.Pod{} },
	{APIVersion: "v1", Kind: "Node"}:                                          func() message { return &corev1.Node{} },
	{APIVersion: "v1", Kind: "Secret"}:                                        func() message { return &corev1.Secret{} },
	{APIVersion: "v1", Kind: "ConfigMap"}:                                     func() message { return &corev1.ConfigMap{} },
	{APIVersion: "v1", Kind: "Service"}:                                       func() message { return &corev1.Service{} },
	{APIVersion: "v1", Kind: "Endpoints"}:                                     func() message { return &corev1.Endpoints{} },
	{APIVersion: "v1", Kind: "Namespace"}:                                     func() message { return &corev1.Namespace{} },
	{APIVersion: "v1", Kind: "PersistentVolume"}:                              func() message { return &corev1.PersistentVolume{} },
	{APIVersion: "v1", Kind: "PersistentVolumeClaim"}:                         func() message { return &corev1.PersistentVolumeClaim{} },
	{APIVersion: "v1", Kind: "Event"}:                                         func() message { return &corev1.Event{} },
	{APIVersion: "v1", Kind: "ServiceAccount"}:                                func() message { return &corev1.ServiceAccount{} },
	{APIVersion: "v1", Kind: "ReplicationController"}:                         func() message { return &corev1.ReplicationController{} },
	{APIVersion: "v1", Kind: "LimitRange"}:                                    func() message { return &corev1.LimitRange{} },
	{APIVersion: "v1", Kind: "ResourceQuota"}:                                 func() message { return &corev1.ResourceQuota{} },
	{APIVersion: "v1", Kind: "PodTemplate"}:                                   func() message { return &corev1.PodTemplate{} },
	{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"}:                func() message { return &discoveryv1.EndpointSlice{} },
	{APIVersion: "events.k8s.io/v1", Kind: "Event"}:                           func() message { return &eventsv1.Event{} },
	{APIVersion: "networking.k8s.io/v1", Kind: "Ingress"}:                     func() message { return &networkingv1.Ingress{} },
	{APIVersion: "networking.k8s.io/v1", Kind: "IngressClass"}:                func() message { return &networkingv1.IngressClass{} },
	{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}:               func() message { return &networkingv1.NetworkPolicy{} },
	{APIVersion: "networking.k8s.io/v1", Kind: "ServiceCIDR"}:                 func() message { return &networkingv1.ServiceCIDR{} },
	{APIVersion: "networking.k8s.io/v1", Kind: "IPAddress"}:                   func() message { return &networkingv1.IPAddress{} },
	{APIVersion: "node.k8s.io/v1", Kind: "RuntimeClass"}:                      func() message { return &nodev1.RuntimeClass{} },
	{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}:                    func() message { return &policyv1.PodDisruptionBudget{} },
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}:                func() message { return &rbacv1.Role{} },
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}:         func() message { return &rbacv1.RoleBinding{} },
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"}:         func() message { return &rbacv1.ClusterRole{} },
	{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRoleBinding"}:  func() message { return &rbacv1.ClusterRoleBinding{} },
	{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaim"}:                 func() message { return &resourcev1.ResourceClaim{} },
	{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimTemplate"}:         func() message { return &resourcev1.ResourceClaimTemplate{} },
	{APIVersion: "resource.k8s.io/v1", Kind: "ResourceSlice"}:                 func() message { return &resourcev1.ResourceSlice{} },
	{APIVersion: "resource.k8s.io/v1", Kind: "DeviceClass"}:                   func() message { return &resourcev1.DeviceClass{} },
	{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}:               func() message { return &schedulingv1.PriorityClass{} },
	{APIVersion: "storage.k8s.io/v1", Kind: "CSIDriver"}:                      func() message { return &storagev1.CSIDriver{} },
	{APIVersion: "storage.k8s.io/v1", Kind: "CSINode"}:                        func() message { return &storagev1.CSINode{} },
	{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"}:                   func() message { return &storagev1.StorageClass{} },
	{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachment"}:               func() message { return &storagev1.VolumeAttachment{} },
	{APIVersion: "storage.k8s.io/v1", Kind: "CSIStorageCapacity"}:             func() message { return &storagev1.CSIStorageCapacity{} },
	{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttributesClass"}:          func() message { return &storagev1.VolumeAttributesClass{} },
}
