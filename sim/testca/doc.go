// Package testca is the small certificate authority of the testbed. Certificates of Weir's identities are made by the
// rules of impl/pki (IssueTo). Only what is not Weir's is made by hand here (Issue): certificates of kube-apiserver and
// of Kubernetes' components, and the wrong ones of attackers. It also makes the key that signs service-account tokens,
// and kubeconfig files.
//
// Certificates are valid from an hour ago (nodes' clocks may be behind) until long after a run. It starts no goroutine
// and keeps no state but its authorities. It is not for production: authorities live in memory and are never renewed.
package testca
