// Package thief uses what was on the disk of a node: the hub's certificate in its pool, and those by which
// kube-apiserver knows hub and node. It asks at kube-apiserver, at the coordinator and at the hubs beside it, over new
// connections and over ones that are open, and it keeps streams open. So it tells what a node can still do that was
// deleted.
//
// New begins with a positive control: what is not granted while the Node is there proves nothing later, and is left
// out. An answer counts as a refusal only if somebody gave it: 401, 403, or an alert of TLS. Who is away refuses
// nobody.
//
// New opens streams with one goroutine each; Close ends them.
package thief
