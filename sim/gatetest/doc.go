// Package gatetest tests weir-gate with a real kube-apiserver: what it shows of the cluster and to whom, and what it
// does while kube-apiserver hangs. The gate runs in the process of the test with the credential of its service account.
// It holds tests only.
package gatetest
