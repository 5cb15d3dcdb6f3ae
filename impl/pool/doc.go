// Package pool has the type Pool of the group weir.dev, version v1alpha1. A person sets in it what a NodePool has no
// field for, and weir-manager reports in its status.
//
// A Pool belongs to the NodePool of its name. The NodePool says who leads and what is shared; the Pool says how it is
// shared, who runs the coordinator, what happens to pods while the pool is silent, and how long credentials count
// without the cloud. Each means something without the other:
//
//   - A NodePool without a Pool is what it is with OpenYurt. Its hubs go by their flags, and --when-silent of
//     weir-manager counts.
//   - A Pool without a NodePool counts for its whenSilent alone, and its status says who is heard. Nothing is told to
//     hubs.
//
// The package holds types only. Values are copied deeply by DeepCopy; nothing here is safe for concurrent writes.
//
// +groupName=weir.dev
// +versionName=v1alpha1
// +kubebuilder:object:generate=true
package pool

//go:generate ../../bin/controller-gen object paths=.
//go:generate ../../bin/controller-gen crd paths=. output:crd:dir=../manager/manifests
