// Package charts makes the templates of the chart weir that follow from weir-manager: definitions, policies, grants and
// its Deployment. They are what `weir-manager --print-manifests` prints, so the chart and the plain manifests cannot
// differ. `make generate` writes them, a test tells when they are stale. The other templates are kept by hand. Package
// sim/chart installs the chart on a real kube-apiserver. It starts no goroutine.
package charts

//go:generate go run ./generate
