// Package wayin is the way from the cloud into pools, in weir-gate. A hub that leads a pool keeps a connection to the
// gate (POST contract.ReversePath), and who may asks for connections into the pool by CONNECT: kube-apiserver, by its
// EgressSelectorConfiguration, for logs, exec, port-forward and the node proxy, and Prometheus by proxy_url. Package
// reverse has the connections.
//
// Way.Around answers both behind the filters of the generic server, which know who calls. CONNECT has no path, so
// authorization is asked about contract.ConnectPath, with the verb connect. Where it is for what is of no pool, which
// the gate dials straight, contract.StraightPath is asked as well. What spec.reach names and a kubelet's port are all
// that a leader dials, whoever asks.
//
// # Which pool an address is of
//
// Way.Run follows Nodes, ServiceCIDRs and the Endpoints leader-hub-<pool>, which tell spec.reach. A host is that of a
// node by an InternalIP, by the name or by the address Hostname of the Node. Sites behind NAT use the same networks, so
// two nodes of different pools may have the same address: it is refused, with the reason. kube-apiserver asks by names
// with --kubelet-preferred-address-types=Hostname,InternalIP, and each node has its own. A kubelet writes the addresses
// of its Node, so the name of a Node comes before a Hostname of another one. An address of a node comes before one of
// spec.reach. An address of a Service (ServiceCIDR), or of a node that is in no pool, is of no pool, whoever else names
// it: neither a kubelet nor a Pool draws into a site what is for the cloud.
//
// Until all have been listed nothing is of a pool for sure, so all is refused.
package wayin
