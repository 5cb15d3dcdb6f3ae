// Package operator tries the commands of operators (impl/operator) on the real kube-apiserver with the real
// weir-manager: what they print is in testdata. Kubelets, hubs and the controller of Deployments are stood in for by
// what they would write. It has nothing but tests.
package operator
