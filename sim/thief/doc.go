// Package thief shows what a stolen disk is worth. It uses the certificates of the disk of a node (of the hub in its
// pool, and of hub and node at the cloud) at kube-apiserver, at the coordinator and at the hubs of other nodes. It uses
// new connections and open ones, and keeps streams open. So it shows what a node can still do after it was deleted.
//
// New begins with a positive control: what is not granted while the Node is there proves nothing later, and is left
// out. An answer counts as a refusal only if somebody gave it: 401, 403, or an alert of TLS. A hub that is away refuses
// nobody.
//
// New opens streams with one goroutine each; Close ends them.
package thief
