// Package offline holds a hub of a node that is cut off against a real kube-apiserver: client-go's informers and
// kubectl at a hub whose link is cut, or that is killed meanwhile, see what they saw before. And a hub that a pod
// floods, while others and the kubelet work. It has nothing but tests.
package offline
