// Package cloud is the cloud side of a run: a real kube-apiserver over an embedded etcd.
//
// It owns: which versions of Kubernetes there are, finding or building the control-plane binaries of one, the cluster's
// authority, etcd (in this process, data in a scratch directory, a unix socket only), the kube-apiserver process, and
// what a platform engineer installs before the first edge node joins (manifests/*.yaml). It is as strict as a real
// cluster: --authorization-mode=Node,RBAC with NodeRestriction; the testbed itself uses a system:masters certificate to
// set things up, but nothing of Weir and no client in a workload has one.
//
// It never touches links or nodes. Every file is below the scratch directory of the caller's proc.Spawner, except the
// cache of built binaries ($XDG_CACHE_HOME/weir/controlplane).
//
// Goroutines: those of etcd, which Cloud.Close ends, and the Spawner's.
package cloud
