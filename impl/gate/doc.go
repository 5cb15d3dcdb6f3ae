// Package gate is the relay in the cloud. It stands beside kube-apiserver and reads it once for all pools. The hub that
// leads a pool reads here what its pool shares, over one connection, and asks for differences instead of objects
// (package delta).
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
// node proxy, and Prometheus by proxy_url. Package reverse has the connections. Package pods serves logs and exec to
// people, where kube-apiserver cannot be told.
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
// Run blocks until its context ends.
package gate
