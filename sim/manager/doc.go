// Package manager holds weir-manager against a real kube-apiserver: its admission policies, its grants, and what it
// does to Nodes and pods. The manager runs in the test's process with the credential of its service account; the tests
// write what kubelets and stock controllers would, as their users. It is tests only.
package manager
