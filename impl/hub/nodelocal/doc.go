// Package nodelocal is what a hub is to the kubelet and the pods of its node, and to nobody else: the certificate
// authority that they trust, the address at which pods call the hub, and the list of pods that do.
//
// # The authority
//
// Authority is the certificate authority of one node. The hub makes it at its first start, and its key never leaves the
// node. So no operator has to make a certificate for the hub, and no machine needs the key of the cluster's authority.
//
//	<dir>/node-authority.pem       the key and the certificate of the authority, mode 0600
//	<dir>/kubelet.pem              the credential of the node's kubelet, key and certificate, mode 0600
//	<etc-dir>/node-authority.crt   the certificates of all authorities of the node that count, for everyone: what a
//	                               kubelet's kubeconfig names
//	<the same>.key.pem             a copy of the first, mode 0600: a hub that has lost its folder is trusted as before
//
// # The hub's own certificate
//
// It is issued by the authority, for 90 days, and it is renewed when 70 to 80 % of that are over. Its key is in memory
// only: a hub that starts makes another. It is for the addresses that the hub listens on, and for the names of Service
// kubernetes. An address that was added is in it within a minute.
//
// # Who trusts it
//
// The kubelet by node-authority.crt. Pods trust nothing but the ConfigMap kube-root-ca.crt, which their kubelet
// gives them: the hub adds the authority to it where its own kubelet reads it (package filter, Own). kube-apiserver,
// the coordinator and other hubs do not trust it.
//
// # A successor
//
// An authority lives for ten years. When three are left the hub makes a successor, which all are shown beside it. When
// two are left the successor signs, and the old key is dropped. At its end the old certificate is. So whoever reads the
// file, or kube-root-ca.crt, once a year never sees a certificate that it does not trust. All times are those of the
// machine's own clock: who verifies is on the same machine. A clock that jumps beyond the end of an authority makes a
// successor at once. Then the kubelet has to read the file again: client-go does that by itself from Kubernetes 1.36
// on, an older kubelet has to be restarted. Pods trust it when kubelet has brought them kube-root-ca.crt again: the hub
// ends kubelet's watch of it, and kubelet writes its volumes with each sync of a pod, by default within 90 s.
//
// # The kubelet's credential
//
// A node may be away for longer than the certificate of its kubelet lives, and nobody can renew that without the cloud.
// So the hub keeps a certificate of the same name that the node's authority has signed, and renews it. It counts at the
// door of this hub, nowhere else. An installer names it in a kubeconfig of its own:
//
//	clusters:
//	- {name: hub, cluster: {server: "https://127.0.0.1:10268", certificate-authority: /etc/weir/node-authority.crt}}
//	users:
//	- {name: node, user: {client-certificate: <dir>/kubelet.pem, client-key: <dir>/kubelet.pem}}
//
// and starts the kubelet with that one when its own certificate has expired. While the cloud is away its holder is a
// node whose certificate has expired: it reads, and its heartbeats are taken; nothing else that it writes is, so
// nothing of it is pushed later (package shelter). While the cloud is there its requests go there with the certificate
// that the hub has of the node, if that is still valid. Else they are answered 401, with the reason.
//
// # Pods
//
// Pods directs the pods of a node to its hub, once they trust the hub's certificate.
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
// OpenAuthority, NewPods and OpenCallers start none. Authority.Run blocks until its context ends. Pods.Run starts what
// listens and what waits, and ends them with its context. Callers.Run writes the file, and ends with its context. Note
// never waits for a disk.
package nodelocal
