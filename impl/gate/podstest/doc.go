// Package podstest has a gate and a kubelet for tests of gate.PodsHandler and of commands that call it. The gate has
// the chain of k8s.io/apiserver. The kubelet speaks SPDY and websockets by the parts of which the real one is made,
// over TLS and with client certificates. It runs no container: what it executes is a few words of its own, see Kubelet.
//
// What a New starts ends with its test.
package podstest
