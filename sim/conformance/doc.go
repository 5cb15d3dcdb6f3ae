// Package conformance lets Kubernetes' own tests judge what Weir answers.
//
// Two kinds of tests are foreign to Weir, and know nothing of it:
//
//   - The tests of k8s.io/apiserver/pkg/storage/testing, which kube-apiserver's watch cache has to pass. They run in
//     this package's own tests, at a relay that stands behind a storage.Interface. A table in the tests names each of
//     them, and the reason where one does not apply to a relay.
//   - The end-to-end specs of k8s.io/kubernetes/test/e2e that need an API server and no running pod. Run brings up a
//     cloud with the stock controllers and a pool of two nodes, and runs them three ways: straight at kube-apiserver,
//     through the hub that leads, and through one that follows. What passes straight passes through a hub, or is one of
//     the Deviations.
//
// Which specs run stands in specs.txt. Hubs relay ConfigMaps, what the default of a pool has, and the custom resource
// of the spec that watches one, so that the specs about watches are answered by relays.
//
// Run starts processes, and ends them before it returns.
package conformance
