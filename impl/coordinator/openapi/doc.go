// Package openapi holds the OpenAPI definitions of the objects that a coordinator stores: Leases, and the meta types of
// any Kubernetes API. Server-side apply and kubectl explain need them. Relayed resources need none, since they are
// read-only here.
package openapi

//go:generate go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260721132016-d427ff9ee9ad --output-dir . --output-pkg github.com/weir-edge/weir/impl/coordinator/openapi --output-file zz_generated.openapi.go --go-header-file header.txt --report-filename /dev/null k8s.io/api/coordination/v1 k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version
