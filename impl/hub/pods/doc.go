// Package pods directs the pods of a node to its hub, once they trust the hub's certificate.
//
// A pod calls the Kubernetes API at the address that its kubelet writes into the environment of its containers as they
// start: the one that Service default/kubernetes has, as the kubelet reads it. Through the hub the kubelet reads
// another one (package filter, Own): --pods-address, a link-local address of the machine, which pods reach in whatever
// network namespace. The hub listens there.
//
// # Order
//
// A pod trusts the hub when the kubelet has written kube-root-ca.crt into its volume, as it reads that through the hub.
// A kubelet does so for pods that it starts, and for all others each time it looks after them: 90 s apart at most, if
// its syncFrequency is the default, a minute. So the address is given --pods-wait after the kubelet has first read
// Services through this hub, and not before: a container of an old pod that starts again meanwhile calls the cloud, as
// before. What was given is kept in <data-dir>/pods: after that a hub that starts gives it at once, with or without the
// cloud. It is not for an authority that the hub has just made.
//
// As long as the hub cannot listen at the address, it is not given. That is tried again each second.
//
// # The address is looked after
//
// Every two seconds it is looked whether the machine still has the address. If not, it is put back; where the hub may
// not (the unit of weir node join gives it no capability), pods are led to the cloud until it is there again, which the
// status, a metric and the log tell.
//
// # Who is not led
//
// Containers that were started before go on to call the cloud. So do pods that find the API in another way: by a
// kubeconfig, by an environment of their own, by the name kubernetes.default.svc. Pods of the node's own network are
// led as others are.
//
// # Who is led and does not trust
//
// An address is told by node, not by pod. A pod that verifies the API by something else than the ca.crt of its kubelet,
// the Secret of a legacy token or a file that is mounted by subPath, is told the hub's address when its container
// starts again, and cannot verify it. Nodes with such pods do without --pods-address, or the pod names its API in
// KUBERNETES_SERVICE_HOST.
//
// # Who calls
//
// Callers keeps the list of pods that call the hub, in the file <data-dir>/callers.json. These pods have the hub's
// address in their environment. An operator who removes the hub has to restart them, and reads the list for that.
//
// A pod is on the list when the cloud has taken a token that is bound to it. So nobody gets another's pod onto the
// list. It holds names only, and no more than 512: who was heard last stays. A pod that is gone stays until then, too:
// who reads the list asks which pods there are.
//
// # Goroutines
//
// New and OpenCallers start none. Pods.Run starts what listens and what waits, and ends them with its context.
// Callers.Run writes the file, and ends with its context. Note never waits for a disk.
package pods
