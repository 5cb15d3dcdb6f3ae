// Package install tries `weir node join` and `leave` with the real kube-apiserver, the real weir-hub and the real command. Only systemd and the kubelet are stood in for: a
// systemd that starts what units name below a folder, and a kubelet that renews the Lease of its Node by the kubeconfig that its unit names. It has nothing but tests.
package install
