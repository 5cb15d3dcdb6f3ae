// Package installtest tries `weir node join` and `leave` with the real kube-apiserver, the real weir-hub and the real
// command. A stand-in for systemd starts what the units in a folder name. Another one plays the kubelet: it renews the
// Lease of its Node with the kubeconfig that its unit names, but in TestKubelet: there it is Kubernetes' own, over the
// container runtime of hollow-node. It has nothing but tests.
package installtest
