// Package nodepool has the type NodePool of the group apps.openyurt.io, version v1beta2: the object by which a person
// describes a pool.
//
// It is wire-compatible with what OpenYurt publishes: its fields, and what they mean, are theirs. An object that
// OpenYurt wrote is read unchanged. Weir's schema (package manager/manifests) is generated from the types here. Where a
// cluster has OpenYurt's, that one is used.
//
// The package holds types only. Values are copied deeply by DeepCopy; nothing here is safe for concurrent writes.
//
// +groupName=apps.openyurt.io
// +versionName=v1beta2
// +kubebuilder:object:generate=true
package nodepool

//go:generate ../../bin/controller-gen object paths=.
//go:generate ../../bin/controller-gen crd paths=. output:crd:dir=../manager/manifests
