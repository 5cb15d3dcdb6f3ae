// Package operatortest tests the commands of operators (impl/operator) with a real kube-apiserver and a real
// weir-manager. Their expected output is in testdata. The tests stand in for kubelets, hubs and the controller of
// Deployments by writing what these would write. It holds tests only.
package operatortest
