// Package filter changes the objects of a resource on their way to one component of the node. For example, kube-proxy
// gets only the endpoints that are near.
//
//	name                 component                         resource        what it does
//	masterservice        kubelet                           services        the Service default/kubernetes has the hub's
//	                                                                       address and port, so the
//	                                                                       kubelet tells pods to call the hub
//	discardcloudservice  kube-proxy                        services        Services of type LoadBalancer with annotation
//	                                                                       svc.openyurt.io/discard=true are not there
//	servicetopology      kube-proxy, coredns,              endpointslices  of Services with a topology, only endpoints on
//	                                                                       this node or in this pool
//	                     nginx-ingress-controller
//
// The names, components and annotations are OpenYurt's. A filter is on if --filters names it, for other components as
// well: name=component,component. What is kept, relayed or shown to others is never touched: a filter wraps the writer
// of one answer.
//
// # The view of a client
//
// A client that lists and watches through a filter has, at every version, what the filter makes of the state at that
// version. Versions are the cloud's. An object that leaves the view is DELETED, one that enters is ADDED, one that
// stays outside is not mentioned; bookmarks pass; a get of what is not in the view is 404. A DELETED has the object as
// it is now. A watch that goes on at a version does not know what its client was shown before: an object that changes
// and is not in the view is DELETED once, though the client may never have had it, and one that enters may be called
// MODIFIED.
//
// Objects that are not altered pass as the bytes that came. Those that are, are patched: fields that this build does
// not know stay. Protobuf and JSON are understood; tables and metadata alone pass as they are. What the cloud has
// compressed is not so any more: only loopback is behind a filter. A list is in memory as a whole, twice, while it is
// altered; a streaming list is not.
//
// # What the node itself reads
//
// An Own is beside the filters that --filters names. It is for requests that prove to be this node's, whatever they
// call themselves, for two ConfigMaps and a Service:
//
//	kube-root-ca.crt, of any namespace   ca.crt has the certificates of the node's own authorities as well, behind those
//	                                     of the cloud
//	the one of kube-proxy                kubeconfig.conf has the hub's address, and trusts what pods trust
//	Service default/kubernetes           has the address of the hub at which pods reach it, as masterservice, from the
//	                                     moment on at which they trust it (hub/nodelocal)
//
// So kubelet writes into the pods of this node what lets them verify their hub, which no machine but the node can sign
// for. What does not hold what it should passes as it is; that is counted and told. With other authorities, open
// watches of these ConfigMaps end with 410, and so does a watch of before that comes back: their clients list. The same
// holds for watches of Services with another address.
//
// # Topology
//
// A Service says by annotation openyurt.io/topologyKeys that its endpoints are for the same node
// (kubernetes.io/hostname) or the same pool (openyurt.io/nodepool, kubernetes.io/zone), or by label weir/topology
// ("node", "pool"), which the cloud copies to the slices. The annotation is learnt from lists and watches of Services
// that pass through the filter, of any of its components: all of them read Services. Members of the pool are the Nodes
// with its label, listed as metadata each 5 minutes (1 kB for 20 nodes). Both are kept in a file, which is written
// before a client sees what was learnt, as clients go on behind that after a restart. As long as the members are not
// known, the pool's endpoints are not filtered. There is no fallback: if no endpoint is near, there is none.
//
// If that changes, what clients have is wrong, without any change of a slice. Informers take no notice of a list in
// which an object has the version that it had before, so open watches get, for each slice that looks different now,
// DELETED (with the watch's version) and ADDED (with the slice's), and then a bookmark with the watch's version. A
// watch that begins later at a version from before the change begins with the same. Where that cannot be (no bookmarks
// wanted, JSON, a resource that is not relayed, a client that was forgotten because there are more than 256), the watch
// ends with 410, and the client lists.
//
// # Goroutines
//
// New starts none. Run lists the members, and ends with its context. A compressed watch has one of its own, which ends
// with it. Changes are told to watches by the one that finds out.
package filter
