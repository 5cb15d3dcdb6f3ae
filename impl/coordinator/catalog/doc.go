// Package catalog is what a coordinator says of the objects that it serves. A Catalog adds the relayed resources to its
// API discovery, beside those that the generic server lists. The generated file has the OpenAPI definitions of the
// objects that it stores: Leases, and the meta types of any Kubernetes API. Server-side apply and kubectl explain need
// them. Relayed resources need none, since they are read-only here.
package catalog

//go:generate go run k8s.io/kube-openapi/cmd/openapi-gen@v0.0.0-20260721132016-d427ff9ee9ad --output-dir . --output-pkg github.com/weir-edge/weir/impl/coordinator/catalog --output-file zz_generated.openapi.go --go-header-file header.txt --report-filename /dev/null k8s.io/api/coordination/v1 k8s.io/apimachinery/pkg/apis/meta/v1 k8s.io/apimachinery/pkg/runtime k8s.io/apimachinery/pkg/version
