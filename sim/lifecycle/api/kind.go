package api

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-edge/weir/impl/pool"
)

// kind is one resource.
type kind struct {
	schema.GroupVersionResource

	kind       string
	namespaced bool
	status     bool // it has the subresource
	forgets    bool // nothing is kept of it
	of         any  // the Go type, for strategic merge patches
}

func kinds() []kind {
	in := func(gv schema.GroupVersion, resource string, k kind) kind {
		k.GroupVersionResource = gv.WithResource(resource)
		return k
	}
	core, admission := corev1.SchemeGroupVersion, admissionv1.SchemeGroupVersion
	return []kind{
		in(core, "nodes", kind{kind: "Node", status: true, of: corev1.Node{}}),
		in(core, "pods", kind{kind: "Pod", namespaced: true, status: true, of: corev1.Pod{}}),
		in(core, "configmaps", kind{kind: "ConfigMap", namespaced: true, of: corev1.ConfigMap{}}),
		in(core, "secrets", kind{kind: "Secret", namespaced: true, of: corev1.Secret{}}),
		in(core, "services", kind{kind: "Service", namespaced: true, of: corev1.Service{}}),
		in(core, "endpoints", kind{kind: "Endpoints", namespaced: true, of: corev1.Endpoints{}}),
		in(discoveryv1.SchemeGroupVersion, "endpointslices",
			kind{kind: "EndpointSlice", namespaced: true, of: discoveryv1.EndpointSlice{}}),
		in(core, "events", kind{kind: "Event", namespaced: true, forgets: true, of: corev1.Event{}}),
		in(eventsv1.SchemeGroupVersion, "events", kind{kind: "Event", namespaced: true, forgets: true, of: eventsv1.Event{}}),
		in(coordinationv1.SchemeGroupVersion, "leases", kind{kind: "Lease", namespaced: true, of: coordinationv1.Lease{}}),
		in(appsv1.SchemeGroupVersion, "daemonsets", kind{kind: "DaemonSet", namespaced: true, of: appsv1.DaemonSet{}}),
		in(batchv1.SchemeGroupVersion, "jobs", kind{kind: "Job", namespaced: true, status: true, of: batchv1.Job{}}),
		in(rbacv1.SchemeGroupVersion, "roles", kind{kind: "Role", namespaced: true, of: rbacv1.Role{}}),
		in(rbacv1.SchemeGroupVersion, "rolebindings", kind{kind: "RoleBinding", namespaced: true, of: rbacv1.RoleBinding{}}),
		in(pool.GroupVersion, "pools", kind{kind: "Pool", status: true, of: pool.Pool{}}),
		in(admission, "validatingadmissionpolicies", kind{kind: "ValidatingAdmissionPolicy"}),
		in(admission, "validatingadmissionpolicybindings", kind{kind: "ValidatingAdmissionPolicyBinding"}),
		in(admission, "mutatingadmissionpolicies", kind{kind: "MutatingAdmissionPolicy"}),
		in(admission, "mutatingadmissionpolicybindings", kind{kind: "MutatingAdmissionPolicyBinding"}),
	}
}

// discovery answers /api, /apis and what is below them, in the form that is not aggregated; nil: there is no such
// document.
func (s *Server) discovery(path string) any {
	gv := schema.GroupVersion{}
	groups := map[string]metav1.APIGroup{}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}}
	for _, k := range s.kinds {
		at := "/apis/" + k.GroupVersion().String()
		if k.Group == "" {
			at = "/api/" + k.Version
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		if k.Group != "" {
			groups[k.Group] = metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
		}
		if at != path {
			continue
		}
		gv = k.GroupVersion()
		r := metav1.APIResource{
			Name: k.Resource, Kind: k.kind, Namespaced: k.namespaced,
			Verbs: metav1.Verbs{"get", "list", "watch", "create", "update", "patch", "delete"},
		}
		list.APIResources = append(list.APIResources, r)
		if k.status {
			r.Name += "/status"
			list.APIResources = append(list.APIResources, r)
		}
	}
	switch {
	case path == "/api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIVersions"}, Versions: []string{"v1"}}
	case path == "/apis":
		all := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
		for _, g := range groups {
			all.Groups = append(all.Groups, g)
		}
		return all
	case list.APIResources != nil:
		list.GroupVersion = gv.String()
		return list
	}
	return nil
}
