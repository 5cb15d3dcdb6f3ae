// Package offline holds a hub of a node that is cut off against a real kube-apiserver: client-go's informers and kubectl at a hub whose link is
// cut, or that is killed meanwhile, see what they saw before. It has nothing but tests.
package offline
