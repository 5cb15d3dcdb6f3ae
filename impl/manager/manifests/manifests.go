// Package manifests holds what a cluster needs beside the process of weir-manager: its admission policies with the
// ConfigMaps that they read, its grants, and a Deployment. `weir-manager --print-manifests | kubectl apply
// --server-side -f -` applies all of it.
//
// Watched holds single objects of that, each by a watch of its own: an RBAC rule can name them, and a change or a
// deletion is known at once. It answers Get as the cluster would, without a request. A watch lasts half an hour to an
// hour, so that many of them cost few requests. What kube-apiserver refuses, Get reports. While the cloud cannot be
// reached, what was read last is valid.
//
// Goroutines: Watched.Start starts those of one informer for each object, and ends them when its context does.
package manifests

import (
	_ "embed" // of the YAML files beside this one
)

var (
	//go:embed apps.openyurt.io_nodepools.yaml
	nodePools string
	//go:embed weir.dev_pools.yaml
	pools string
	//go:embed policies.yaml
	policies string
	//go:embed rbac.yaml
	rbac string
	//go:embed hubs.yaml
	hubs string
	//go:embed gate.yaml
	gate string
	//go:embed gate-pods.yaml
	gatePods string
	//go:embed tenants.yaml
	tenants string
	//go:embed deployment.yaml
	deployment string
)

// NodePools is the definition (CRD) of NodePools. Where OpenYurt installed its own, that one serves as well.
func NodePools() string { return nodePools }

// Pools is the definition (CRD) of Pools, which are Weir's own.
func Pools() string { return pools }

// Policies are the admission policies, their bindings and the ConfigMaps that they read.
func Policies() string { return policies }

// RBAC are the manager's service account and grants.
func RBAC() string { return rbac }

// Hubs are the roles of hubs. Nobody has them until they are bound.
func Hubs() string { return hubs }

// GateAccess are the service account and the grants of weir-gate, which is optional.
func GateAccess() string { return gate }

// GatePods are the grants that weir-gate needs besides for logs, exec, attach and port-forward of pods.
func GatePods() string { return gatePods }

// Tenants are the roles of people who see, operate or make pools.
func Tenants() string { return tenants }

// All is everything, with a Deployment of two replicas.
func All() string {
	return nodePools + pools +
		"---\n" + policies + "---\n" + rbac + "---\n" + hubs + "---\n" + tenants + "---\n" + deployment
}
