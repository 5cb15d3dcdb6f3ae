// Package pods is the way from callers in the cloud to the kubelets of a pool: logs, exec, attach and port-forward by
// weir-gate. It is for clusters whose kube-apiserver does not reach edge nodes and cannot be told how. There kubectl
// logs fails, and `kubectl weir logs` calls this.
//
//	kubectl weir ──► the generic chain of weir-gate ──► Handler ──► Config.Dial ──► kubelet
//
// A Handler serves, as kube-apiserver does,
//
//	GET        /api/v1/namespaces/NAMESPACE/pods/NAME/log
//	GET, POST  /api/v1/namespaces/NAMESPACE/pods/NAME/{exec,attach,portforward}   with an upgrade
//
// It knows no pools and no way to them: Config.Dial has that.
//
// # Who may
//
// The chain before it knows the caller, and asks kube-apiserver the question that kube-apiserver would ask itself: may
// this user get, or create, pods/log, pods/exec and so on, of this name in this namespace. An upgrade by GET, which is
// a websocket, needs create as well, as in Kubernetes since 1.35 (AuthorizePodWebsocketUpgradeCreatePermission). The
// Handler asks that. An allowed answer counts as long as the gate says, five minutes. Whoever may get and not create
// learns nothing of the pod.
//
// Two things of kube-apiserver are missing here. Its admission is not asked: a webhook or a ValidatingAdmissionPolicy
// about CONNECT of pods/exec does not see this. Its audit log has the review and not the request: the line of the log
// of the gate stands for it.
//
// # What a kubelet sees
//
// The gate, and nothing of the caller: no Authorization, no impersonation, no token in a websocket protocol, no
// cookie, no address. Headers are passed by a list of those that an upgrade needs. Namespace and name are those of the
// Pod that kube-apiserver has answered. The container is one of the Pod. Parameters are decoded, checked and written
// again, so nothing of the caller's URL goes on.
//
// Pod and Node are read at kube-apiserver for each request, as the gate. kubelets ask about get nodes/proxy for logs
// and for a websocket, and about create nodes/proxy for SPDY (kubelet 1.37; fine-grained authorization, KEP-2862, has
// no finer part for these). Either is enough to run commands in each container of each node of the cluster.
//
// So the gate shows a client certificate, which nobody can use who sees it. A token is sent to the kubelet: root on
// one edge node takes it there, and may then do the same at all nodes. Config.Token is for clusters where that is
// known. It needs Config.CAFile, since else each hub on the way could take it, too.
//
// The serving certificate of a kubelet is verified if Config.CAFile is there, for the address that is dialed. It is
// not verified otherwise. That is what kube-apiserver does without --kubelet-certificate-authority, the default of
// kubeadm. A hub on the way could then play the kubelet, and read what callers type. insecureSkipTLSVerifyBackend of a
// caller opens nothing: it is refused where there is a CAFile.
//
// A websocket goes to the kubelet as it is, which kubelets take since 1.36 (ExtendWebSocketsToKubelet). Older ones
// refuse the protocol, and clients then take SPDY by themselves.
//
// # Bounds
//
// Config has the bounds and their defaults: requests at once for each user and in sum (429), time to connect, time to
// the first answer. logs with follow has no time for the first answer, since a kubelet says nothing before there is a
// line. Nothing is kept: bytes go on as they come, by a buffer of 32 KiB for each direction. A log that breaks ends
// with an error at the caller, too.
//
// Each request is one line of the log, with user, pod, container, bytes and duration. Commands are not in it.
//
// ServeHTTP uses the goroutine of its request, and two more while an upgrade lasts. Close ends all requests, and
// waits.
package pods
