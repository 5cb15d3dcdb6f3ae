// Package install tries `weir node join` and `leave` with the real kube-apiserver, the real weir-hub and the real
// command. A systemd is stood in for, which starts what units name below a folder. So is the kubelet, by renewals of
// the Lease of its Node with the kubeconfig that its unit names, but in TestKubelet: there it is Kubernetes' own, over
// the container runtime of hollow-node. It has nothing but tests.
package install
