// Package managertest tests weir-manager with a real kube-apiserver: its admission policies, its grants, and its writes
// to Nodes and pods. The manager runs in the process of the test with the credential of its service account. The tests
// write what kubelets and stock controllers would write, as their users. It holds tests only.
package managertest
