// Package offlinetest tests a hub that is cut off, with a real kube-apiserver: informers of client-go and kubectl, at
// a hub whose link is cut or that is killed meanwhile, still see the objects that they saw before. It also tests a hub
// that one pod floods while others and the kubelet work. It holds tests only.
package offlinetest
