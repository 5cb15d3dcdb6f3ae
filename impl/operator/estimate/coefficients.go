package estimate

// Coefficients of the model. Each was measured; reports/real-node is of 5 nodes, reports/real-node-20 of 20.
const (
	// stockQuiet is what a stock node costs while nothing changes, in bytes a second, without its Node's status and the
	// network plugin's watch of Nodes: 216.7 less 44.0 and 22 of 5 nodes, 335.7 less 162.4 and 22 of 20.
	stockQuiet = 151.0
	// stockOwnNode is how often each status of a Node crosses the link to the node itself: kubelet's watch, kube-proxy's
	// watch, and the answer to the patch. 9.4, 9.6 and 8.4 bytes a second in real-node, with a Node of 2.2 kB.
	stockOwnNode = 3
	// stockWatch is a quiet watch of a stock client, in bytes a second: its bookmarks, and its beginning again. It is in
	// stockQuiet for the clients of usualClients.
	stockWatch = 2.4
	// weirPoolQuiet and weirNodeQuiet are what a quiet pool costs and what each node of it adds, in bytes a second: the
	// line through 5 nodes of 52.1 and 20 nodes of 47.8.
	weirPoolQuiet = 28.6
	weirNodeQuiet = 46.4

	// compressed is what is left of a change on a watch that kube-apiserver compresses: the endpointslices of weir-hub
	// beside those of one kube-proxy while pods are replaced are 331 of 1,072 kB in real-node and 223 of 1,134 kB in
	// real-node-20. The class pool of reports/openyurt-load and reports/pool-cache-20 is 0.32 to 0.36 of the objects.
	compressed = 0.29
	// compresses is the first minor version of Kubernetes 1 that compresses a watch (docs/operations.md).
	compresses = 37

	// A pod that is replaced costs its own node so many bytes, and so many sizes of the pod (kubelet's watch of its pods,
	// statuses, reads, the deletion). 47.1 and 46.1 kB for each of 100 pods in real-node and real-node-20, with Weir 24.6
	// and 25.5 kB. A pod there is 2.8 kB: a get of one is 3.0 kB with both heads.
	stockPodBytes, stockPodSizes = 5_600, 14.7
	weirPodBytes, weirPodSizes   = 9_600, 5.5
	podSize                      = 2_800.0

	// statusPeriod is how often a stock kubelet writes the status of its Node that only says when, and weirStatusPeriod
	// how often such a status reaches the cloud with Weir (--node-status-period), in seconds.
	statusPeriod, weirStatusPeriod = 300.0, 1800.0

	// within is the error of an estimate: TestReports holds it for the workloads of docs/bytes.md.
	within = 0.25
)

const day = 24 * 60 * 60.0 // seconds

// usual is what stock clients watch of the whole cluster.
type usual struct {
	name    string // resource.group
	version string
	nodes   int // clients on each node: kubelet, kube-proxy, and a network plugin that watches Nodes as flannel does
	dns     int // clients in a pod of CoreDNS
}

func usualClients() []usual {
	return []usual{
		{services, "v1", 2, 1},
		{endpointSlices, "v1", 1, 1},
		{nodes, "v1", 1, 0},
		{namespaces, "v1", 0, 1},
		{"csidrivers.storage.k8s.io", "v1", 1, 0},
		{"runtimeclasses.node.k8s.io", "v1", 1, 0},
		{"servicecidrs.networking.k8s.io", "v1", 1, 0},
		{"networkpolicies.networking.k8s.io", "v1", 0, 0},
	}
}

// Names of resources.
const (
	services       = "services"
	endpointSlices = "endpointslices.discovery.k8s.io"
	nodes          = "nodes"
	namespaces     = "namespaces"
	pods           = "pods"
)
