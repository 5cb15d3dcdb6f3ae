// Package nodeauthority is the certificate authority of one node. The hub makes it at its first start, and its key
// never leaves the node. So no operator has to make a certificate for the hub, and no machine needs the key of the
// cluster's authority.
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
// # Goroutines
//
// Open starts none. Run blocks until its context ends.
package nodeauthority
