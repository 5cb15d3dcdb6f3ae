// Package pki is the small certificate authority of the testbed. It makes what a platform engineer would get
// from the cluster's own authorities: server and client certificates, the key that signs service-account
// tokens, kubeconfig files.
//
// All keys are ECDSA P-256. Certificates are valid from an hour ago (nodes' clocks may be behind) for a day,
// far longer than a run. It starts no goroutine and keeps no state but its authorities. It is not for
// production: authorities live in memory and are never renewed.
package pki
