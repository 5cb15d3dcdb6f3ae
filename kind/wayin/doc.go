// Package wayin holds the specs of a pool behind a wall: a kind cluster whose workers accept nothing from the cloud.
// They reach nothing there but kube-apiserver and weir-gate. Its kube-apiserver reaches kubelets by an egress selector,
// through the gate and the hub that leads. `make test-kind LABELS=wayin` runs them.
//
// kubectl is the real one, and called as its users do. Each node runs a pod that writes a line again and again.
//
// They do not run with `go test ./...`: they need a Docker engine and some minutes.
package wayin
