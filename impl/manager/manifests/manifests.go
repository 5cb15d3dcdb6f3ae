// Package manifests holds what a cluster needs beside the process of weir-manager: its admission policies with the
// ConfigMaps that they read, its grants, and a Deployment. `weir-manager --print-manifests | kubectl apply
// --server-side -f -` applies all of it. It starts no goroutine.
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
