// Package chart holds the tests of the chart weir on a real kube-apiserver: what it renders is what weir-manager
// prints, every value file passes a strict dry run of the server, and a release installs, upgrades, stays while nodes
// are in pools, and then leaves nothing behind. The controllers are those of Kubernetes, the helm command is that of
// charts/helm. A test plays the kubelet: it runs the program that a pod names, as the account that the pod has.
package chart
