package relay

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// builtin is what a relay knows of a built-in resource beyond its name.
type builtin struct {
	group, version, resource, kind string
	singular                       string
	short                          []string
	clusterScoped                  bool
	// fields are the field selectors beyond metadata.name and metadata.namespace, with the path of field numbers
	// in the protobuf message (pkg/apis/<group>/v1/conversion.go and the registry strategies of Kubernetes 1.37).
	fields map[string][]int
	// aliases are older names of fields.
	aliases map[string]string
	// bools are those fields that read "true" or "false".
	bools map[string]bool
	new   func() Message
	// warning is what kube-apiserver says with each answer (RFC 7234, code 299). Kubernetes 1.33 is the first that says it.
	warning string
}

var builtins = []*builtin{
	{
		version: "v1", resource: "endpoints", kind: "Endpoints", singular: "endpoints", short: []string{"ep"},
		new:     func() Message { return &corev1.Endpoints{} },
		warning: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
	},
	{
		group: "discovery.k8s.io", version: "v1", resource: "endpointslices", kind: "EndpointSlice",
		new: func() Message { return &discoveryv1.EndpointSlice{} },
	},
	{
		version: "v1", resource: "services", kind: "Service", short: []string{"svc"},
		fields: map[string][]int{"spec.clusterIP": {2, 3}, "spec.type": {2, 4}},
		new:    func() Message { return &corev1.Service{} },
	},
	{
		version: "v1", resource: "nodes", kind: "Node", short: []string{"no"}, clusterScoped: true,
		fields: map[string][]int{"spec.unschedulable": {2, 4}}, bools: map[string]bool{"spec.unschedulable": true},
		new: func() Message { return &corev1.Node{} },
	},
	{
		version: "v1", resource: "pods", kind: "Pod", short: []string{"po"},
		fields: map[string][]int{
			"spec.nodeName": {2, 10}, "spec.restartPolicy": {2, 3}, "spec.schedulerName": {2, 19}, "spec.serviceAccountName": {2, 8},
			"spec.hostNetwork": {2, 11}, "status.phase": {3, 1}, "status.podIP": {3, 6}, "status.nominatedNodeName": {3, 11},
		},
		aliases: map[string]string{"spec.host": "spec.nodeName"},
		bools:   map[string]bool{"spec.hostNetwork": true},
		new:     func() Message { return &corev1.Pod{} },
	},
	{
		version: "v1", resource: "namespaces", kind: "Namespace", short: []string{"ns"}, clusterScoped: true,
		fields: map[string][]int{"status.phase": {3, 1}, "name": {1, 1}},
		new:    func() Message { return &corev1.Namespace{} },
	},
	{
		version: "v1", resource: "configmaps", kind: "ConfigMap", short: []string{"cm"},
		new: func() Message { return &corev1.ConfigMap{} },
	},
}

func findBuiltin(group, version, resource string) *builtin {
	for _, b := range builtins {
		if b.group == group && b.version == version && b.resource == resource {
			return b
		}
	}
	return nil
}

func builtinNames() []string {
	names := make([]string, 0, len(builtins))
	for _, b := range builtins {
		names = append(names, b.resource+"."+b.version+"."+b.group)
	}
	return names
}
