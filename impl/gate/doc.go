// Package gate is the relay in the cloud. It stands beside kube-apiserver and reads it once for all pools. The hub that
// leads a pool reads here what its pool shares, over one connection, and asks for differences instead of objects
// (package wire).
//
//	kube-apiserver ──► source.Feeder ──► relay ──► rest.Handler ──► source.Feeder of a leader
//
// A gate is optional. A hub that finds none, or one that does not answer, reads the same at kube-apiserver, and goes on
// at the version that it has reached: versions are the cloud's everywhere.
//
// # Who may read
//
// It serves get, list and watch of the resources that its flags name, and nothing else: never Secrets, no write. Each
// caller is known by a client certificate of the cluster or by a token, and may read what kube-apiserver lets him read:
// a SubjectAccessReview tells. An allowed review counts for five minutes, a denied one for half a minute. Tokens for
// kube-apiserver are never sent here by hubs; they show their certificate.
//
// # A gate that is behind
//
// A relay that its source has shown no sign of life for Config.FreshWithin is not served: a request for it is answered
// by 503 with Retry-After, and watches of it end. So nobody takes a gate that has lost kube-apiserver for the cloud.
//
// Memory for each further reader is that of its stream: changes are encoded once for all.
//
// # The way into pools
//
// A hub that leads a pool keeps a connection to the gate (POST contract.ReversePath), and who may asks for connections
// into the pool by CONNECT: kube-apiserver, by its EgressSelectorConfiguration, for logs, exec, port-forward and the
// node proxy, and Prometheus by proxy_url. Package reverse has the connections. PodsHandler serves logs and exec
// to people, where kube-apiserver cannot be told.
//
// wayIn.Around answers both behind the filters of the generic server, which know who calls. CONNECT has no path, so
// authorization is asked about contract.ConnectPath, with the verb connect. Where it is for what is of no pool, which
// the gate dials straight, contract.StraightPath is asked as well. What spec.reach names and a kubelet's port are all
// that a leader dials, whoever asks.
//
// # Which pool an address is of
//
// wayIn.Run follows Nodes, ServiceCIDRs and the Endpoints leader-hub-<pool>, which tell spec.reach. A host is that of a
// node by an InternalIP, by the name or by the address Hostname of the Node. Sites behind NAT use the same networks, so
// two nodes of different pools may have the same address: it is refused, with the reason. kube-apiserver asks by names
// with --kubelet-preferred-address-types=Hostname,InternalIP, and each node has its own. A kubelet writes the addresses
// of its Node, so the name of a Node comes before a Hostname of another one. An address of a node comes before one of
// spec.reach. An address of a Service (ServiceCIDR), or of a node that is in no pool, is of no pool, whoever else names
// it: neither a kubelet nor a Pool draws into a site what is for the cloud.
//
// Until all have been listed nothing is of a pool for sure, so all is refused.
//
// # Logs and commands of pods
//
// PodsHandler is the way from callers in the cloud to the kubelets of a pool: logs, exec, attach and port-forward. It
// is for clusters whose kube-apiserver does not reach edge nodes and cannot be told how. There kubectl
// logs fails, and `kubectl weir logs` calls this.
//
//	kubectl weir ──► the generic chain of weir-gate ──► PodsHandler ──► PodsConfig.Dial ──► kubelet
//
// A PodsHandler serves, as kube-apiserver does,
//
//	GET        /api/v1/namespaces/NAMESPACE/pods/NAME/log
//	GET, POST  /api/v1/namespaces/NAMESPACE/pods/NAME/{exec,attach,portforward}   with an upgrade
//
// It knows no pools and no way to them: PodsConfig.Dial has that.
//
// # Who may have logs and commands
//
// The chain before it knows the caller, and asks kube-apiserver the question that kube-apiserver would ask itself: may
// this user get, or create, pods/log, pods/exec and so on, of this name in this namespace. An upgrade by GET, which is
// a websocket, needs create as well, as in Kubernetes since 1.35 (AuthorizePodWebsocketUpgradeCreatePermission). The
// PodsHandler asks that. An allowed answer counts as long as the gate says, five minutes. Whoever may get and not
// create learns nothing of the pod.
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
// one edge node takes it there, and may then do the same at all nodes. PodsConfig.Token is for clusters where that is
// known. It needs PodsConfig.CAFile, since else each hub on the way could take it, too.
//
// The serving certificate of a kubelet is verified if PodsConfig.CAFile is there, for the address that is dialed. It is
// not verified otherwise. That is what kube-apiserver does without --kubelet-certificate-authority, the default of
// kubeadm. A hub on the way could then play the kubelet, and read what callers type. insecureSkipTLSVerifyBackend of a
// caller opens nothing: it is refused where there is a CAFile.
//
// A websocket goes to the kubelet as it is, which kubelets take since 1.36 (ExtendWebSocketsToKubelet). Older ones
// refuse the protocol, and clients then take SPDY by themselves.
//
// # Bounds of logs and commands
//
// PodsConfig has the bounds and their defaults: requests at once for each user and in sum (429), time to connect, time
// to the first answer. logs with follow has no time for the first answer, since a kubelet says nothing before there is
// a line. Nothing is kept: bytes go on as they come, by a buffer of 32 KiB for each direction. A log that breaks ends
// with an error at the caller, too.
//
// Each request is one line of the log, with user, pod, container, bytes and duration. Commands are not in it.
//
// PodsHandler.ServeHTTP uses the goroutine of its request, and two more while an upgrade lasts. PodsHandler.Close ends
// all requests, and waits.
//
// # Goroutines
//
// Gate.Run blocks until its context ends.
package gate
