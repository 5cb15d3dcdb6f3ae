package relay

// Builtin is what is known of one beyond its name.
type Builtin struct {
	Group, Version, Resource, Kind string
	Singular                       string // "": Kind in lower case
	Short                          []string
	ClusterScoped                  bool
	// Fields are the field selectors beyond metadata.name and metadata.namespace, with the path of field numbers
	// in the protobuf message (pkg/apis/<group>/v1/conversion.go and the registry strategies of Kubernetes 1.37).
	Fields map[string][]int
	// Aliases are older names of fields.
	Aliases map[string]string
	// Bools are those fields that read "true" or "false".
	Bools map[string]bool
	// Warning is what kube-apiserver says with each answer (RFC 7234, code 299). Kubernetes 1.33 is the first that says
	// it.
	Warning string
}

var builtins = []*Builtin{
	{
		Version: "v1", Resource: "endpoints", Kind: "Endpoints", Singular: "endpoints", Short: []string{"ep"},
		Warning: "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
	},
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices", Kind: "EndpointSlice"},
	{
		Version: "v1", Resource: "services", Kind: "Service", Short: []string{"svc"},
		Fields: map[string][]int{"spec.clusterIP": {2, 3}, "spec.type": {2, 4}},
	},
	{
		Version: "v1", Resource: "nodes", Kind: "Node", Short: []string{"no"}, ClusterScoped: true,
		Fields: map[string][]int{"spec.unschedulable": {2, 4}}, Bools: map[string]bool{"spec.unschedulable": true},
	},
	{
		Version: "v1", Resource: "pods", Kind: "Pod", Short: []string{"po"},
		Fields: map[string][]int{
			"spec.nodeName": {2, 10}, "spec.restartPolicy": {2, 3}, "spec.schedulerName": {2, 19},
			"spec.serviceAccountName": {2, 8},
			"spec.hostNetwork":        {2, 11}, "status.phase": {3, 1}, "status.podIP": {3, 6},
			"status.nominatedNodeName": {3, 11},
		},
		Aliases: map[string]string{"spec.host": "spec.nodeName"},
		Bools:   map[string]bool{"spec.hostNetwork": true},
	},
	{
		Version: "v1", Resource: "namespaces", Kind: "Namespace", Short: []string{"ns"}, ClusterScoped: true,
		Fields: map[string][]int{"status.phase": {3, 1}, "name": {1, 1}},
	},
	{
		Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies", Kind: "NetworkPolicy",
		Short: []string{"netpol"},
	},
	{
		Group: "networking.k8s.io", Version: "v1", Resource: "servicecidrs", Kind: "ServiceCIDR", ClusterScoped: true,
	},
	{
		Group: "node.k8s.io", Version: "v1", Resource: "runtimeclasses", Kind: "RuntimeClass", ClusterScoped: true,
	},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers", Kind: "CSIDriver", ClusterScoped: true},
	{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Short: []string{"cm"}},
}

// FindBuiltin gives a built-in resource, nil if there is none of that name.
func FindBuiltin(group, version, resource string) *Builtin {
	for _, b := range builtins {
		if b.Group == group && b.Version == version && b.Resource == resource {
			return b
		}
	}
	return nil
}

// builtinNames are all of them, as ParseResource reads them.
func builtinNames() []string {
	names := make([]string, 0, len(builtins))
	for _, b := range builtins {
		names = append(names, b.Resource+"."+b.Version+"."+b.Group)
	}
	return names
}
