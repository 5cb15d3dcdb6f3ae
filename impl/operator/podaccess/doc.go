// Package podaccess has weir logs, weir exec and weir port-forward: what kubectl does by these names, over weir-gate.
// They are for clusters whose kube-apiserver does not reach edge nodes, and for no other.
//
// The pod is read at kube-apiserver, and so is where the gate is: the annotations of the Endpoints of the pool's
// leader. The gate is then called with the credentials of the kubeconfig, and verified by the authority of that
// annotation. Nothing of the kubeconfig that is about its server is used for the gate: no authority, no server name,
// no proxy.
//
// Commands and ports go over websockets, and over SPDY where the kubelet does not take these.
//
// An exec with a terminal has one goroutine that looks for its size. It ends with the command.
package podaccess
