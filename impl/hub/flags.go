package hub

import (
	"fmt"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/hub/nodelocal"
	"github.com/weir-edge/weir/impl/hub/shelter"
	"github.com/weir-edge/weir/impl/identity"
	"github.com/weir-edge/weir/impl/limit"
)

// bind declares the flags of weir-hub.
func (c *Config) bind(f *cli.Flags) {
	f.StringVar(&c.NodeName, "node-name", "", "name of this node in the cluster; required")
	f.StringVar(&c.NodePoolName, "nodepool-name", "", "name of this node's pool; required")

	f.StringArrayVar(&c.CloudServers, "cloud-server", nil,
		"URL of a kube-apiserver; repeat it for several that serve the same cluster; class=URL is another address of the "+
			"same for one class of traffic (pool, node, heartbeat or control), one for each; required without "+
			"--cloud-client-kubeconfig")
	f.StringVar(&c.CloudClientCertFile, "cloud-client-cert-file", "",
		"PEM file of the node's key and certificate, of user "+contract.NodeUserPrefix+
			"<node-name>: the kubelet's own; by it the hub sends what the kubelet asks, and asks for its own certificates; "+
			"required without --cloud-client-kubeconfig")
	f.StringVar(&c.CloudClientKubeconfig, "cloud-client-kubeconfig", "",
		"the kubelet's own kubeconfig, which says what --cloud-server, --cloud-client-cert-file and cloud-ca.crt in "+
			"--etc-dir do not: server, authorities, tls-server-name, proxy-url, and the client certificate, token, tokenFile "+
			"or exec plugin of its current user; it and the files that it names are read again every ten seconds, and what "+
			"has changed counts; without proxy-url HTTPS_PROXY and NO_PROXY count; beside it "+
			"--cloud-client-cert-file is where the kubelet renews a certificate that stands in the kubeconfig; "+
			"a plugin is run by the hub, has 30 s, and may want no terminal; with a token the hub asks the cloud for a "+
			"certificate of the node that counts for a day, keeps it in --data-dir, and shows it in the place of the token")

	f.DurationVar(&c.NodeStatusPeriod, "node-status-period", shelter.DefaultNodeStatusPeriod,
		"how old the heartbeat times in this Node's status may be at the cloud: until then a status that brings nothing "+
			"else stays here, and the node's Lease says that it is alive; 0 passes each")

	f.StringVar(&c.EtcDir, "etc-dir", "/etc/weir",
		"directory, on a disk that survives restarts, outside --data-dir, of files beside the configuration, each if it is "+
			"there: "+cloudCA+", the authorities that sign the kube-apiserver's certificate, needed without "+
			"--cloud-client-kubeconfig; "+servingPair+", the hub's key and certificate; "+poolCA+", the pool's authorities, "+
			"which count until the hub has heard of others from the cloud or its pool; "+bootstrapToken+", a bootstrap token "+
			"of this node, by which the hub asks for its certificates while it holds none; "+bootID+", a text that is another "+
			"one after each start of this machine, in the place of the kernel's. "+
			"The hub writes there, where nothing else is given: "+nodeAuthority+", the certificates of this node's own "+
			"authority, which it keeps in --data-dir, for the kubelet's kubeconfig; everyone may read it; and "+storeKey+
			", the key of what is kept")

	f.StringVar(&c.BindAddress, "bind-address", "127.0.0.1", "IP address that the API is served on")
	f.IntVar(&c.SecurePort, "secure-port", contract.HubSecurePort, "TLS port of the API; 0 takes any free one")
	f.StringArrayVar(&c.TLSHosts, "tls-hosts", nil,
		"IP address or DNS name, beside those that the hub listens on, for its own certificate: the address of Service "+
			"kubernetes, where connections of pods to it lead here; repeatable")
	f.StringVar(&c.PodsAddress, "pods-address", "",
		"IP address of this machine that its pods reach in whatever network namespace, as "+contract.PodsAddress+
			" on its loopback interface: the API is served there at --secure-port, too, and the kubelet "+
			"tells it the containers that it starts as the address of the API, when they trust the hub; needs this node's own "+
			"authority; empty leads no pod to the hub")
	f.DurationVar(&c.PodsWait, "pods-wait", nodelocal.DefaultPodsWait,
		"how long the kubelet has to read through this hub before it tells containers its address: by then it has brought "+
			"all pods the node's authority; longer if the kubelet's syncFrequency is more than its minute")
	f.StringArrayVar(&c.ClientCAFiles, "client-ca-file", nil,
		"PEM file of the authorities that sign the kubelet's client certificate, or a kubeconfig, of which those of its "+
			"current cluster count; repeatable; without it client certificates are not asked for")
	f.Listen(&c.HealthBindAddress, &c.HealthPort, "health-port", "127.0.0.1", contract.HubHealthPort,
		"port of health, metrics and status, and the IP address that it is on if it is another one; 0 takes any free one")
	f.IntVar(&c.ProxyPort, "proxy-port", 0,
		"plain HTTP port of the API, for callers with a token or none; it never lends this node's identity; 0 is off")

	f.BoolVar(&c.Anonymous, "anonymous", false,
		"send requests without a token or certificate to the cloud, which decides about them as system:anonymous; "+
			"without it they are answered here with 401, but for /healthz, /livez, /readyz and /version")
	f.IntVar(&c.CallerRate, "caller-rate", limit.DefaultCallerRate,
		"new requests a second to the cloud of one service account, or of one token of another user; one that rested may "+
			"send those of half a minute at once; beyond that they are answered with 429; this node is not limited")

	f.Int64Var(&c.CallersMaxBytes, "callers-max-bytes", limit.DefaultCallersBytes,
		fmt.Sprintf("bytes that requests of all others than this node may take while they are under way, where a watch "+
			"counts as %d KiB and any other request as %d KiB; one caller may take three times what is free",
			limit.WatchBytes>>10, limit.RequestBytes>>10))

	f.StringVar(&c.DataDir, "data-dir", "/var/lib/weir-hub",
		"directory, on a disk that survives restarts, of what relays hold, clients of this node read and the node wrote, "+
			"which the hub serves from while the cloud is away; one process at a time; required")

	f.Int64Var(&c.StoreMaxBytes, "store-max-bytes", 256<<20,
		"bytes that this may take on the disk; when it is full, what the component read that asked least recently is "+
			"dropped, but nothing of the kubelet's")
	f.StringVar(&c.StoreKeyFile, "store-key-file", "",
		"file of a key, 32 bytes or these in base64, that encrypts what is kept of objects, Secrets and tokens among them, "+
			"and of writes; mode 0600, outside --data-dir; "+
			"without it, the credential "+disk.Credential+" of systemd, else "+storeKey+" in --etc-dir; "+
			NoKey+" encrypts nothing: a thief of --data-dir has the Secrets and tokens of this node's pods")
	f.DurationVar(&c.OfflineTokenAllowance, "offline-token-allowance", identity.DefaultAllowance,
		"how long after its end a token, or this node's own certificate, counts while the cloud is away, since nobody can "+
			"renew it then")
	f.DurationVar(&c.OfflineAccess, "offline-access", identity.DefaultTTL,
		"how long after the cloud last allowed a caller a read it counts while the cloud is away; the node itself is "+
			"not limited")

	f.StringArrayVar(&c.Filters, "filters", nil,
		"filter of what a component of this node sees: masterservice (kubelet), discardcloudservice (kube-proxy), "+
			"servicetopology (kube-proxy, coredns, nginx-ingress-controller); "+
			"repeatable; name=component,component is for other components; none are on without it")
	f.StringVar(&c.MasterServiceAddress, "master-service-address", "",
		"IP address and port of the hub as pods see it, which masterservice gives the Service default/kubernetes")

	f.StringArrayVar(&c.PoolScopeResources, "pool-scope-resources", defaultResources(),
		"resource.version.group that the pool keeps one copy of while a client reads it, which each of its nodes may read "+
			"(never Secrets); the same as at the coordinator; "+
			"what leader-hub-<pool> in the cloud names counts above it; "+
			"repeatable; a custom resource needs its kind, as in widgets.v1.example.com=Widget; +resource.version.group is "+
			"relayed though nobody reads it")

	f.BoolVar(&c.EnableCoordinator, "enable-coordinator", false,
		"take part in the pool: in its coordinator, or where it has none, in what its leader hubs show; leader-hub-<pool> "+
			"in the cloud tells where they are, and --coordinator-server or --leader-hub until then")
	f.StringArrayVar(&c.CoordinatorServers, "coordinator-server", nil,
		"URL of the coordinator, repeated for each of its replicas; an address, not a Service, because Services need "+
			"what it serves")
	f.StringArrayVar(&c.LeaderHubs, "leader-hub", nil,
		"node=IP:port of a hub that reads the cloud for a pool without a coordinator, and where its --pool-port is; "+
			"repeated for each, the same at all hubs of the pool, themselves among them; "+
			"hubs that are not named read one of these")
	c.bindOfCoordinator(f)
	c.Images.Bind(f)

	f.Listen(&c.PoolBindAddress, &c.PoolPort, "pool-port", "0.0.0.0", contract.HubPoolPort,
		"TLS port on which this hub shows its relays to the coordinator and the hubs of its pool, and the IP address that "+
			"it is on if it is to be one; 0 takes any free one")
	f.StringVar(&c.PoolAddress, "pool-address", "",
		"IP address and port at which the pool reaches it, if that is another one: behind a translation of addresses; "+
			contract.PoolAddressReverse+
			": nobody can connect to this node, so its hub connects to the coordinator; default: the address from which this "+
			"hub reaches the coordinator")

	f.DurationVar(&c.FailoverGracePeriod, "failover-grace-period", 30*time.Second,
		"how long a hub that lost the pool's cache serves on from its own and opens nothing to the cloud; the hubs of a "+
			"pool go there over as long again, and come back over a tenth of it")

	f.DurationVar(&c.LeaderElectLeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"how long other hubs leave a silent leader alone")
	f.DurationVar(&c.LeaderElectRenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"how long a leader tries to renew before it steps down")
	f.DurationVar(&c.LeaderElectRetryPeriod, "leader-elect-retry-period", 2*time.Second,
		"time between two tries to renew or acquire")
	f.DurationVar(&c.HeartbeatInterval, "heartbeat-interval", 10*time.Second,
		"how long nothing may come from a healthy server before it is probed; each sixth time one that feeds relays is "+
			"probed in any case, each thirtieth time any other")
	f.DurationVar(&c.HeartbeatTimeout, "heartbeat-timeout", 2*time.Second, "how long a probe may take")
	f.IntVar(&c.HeartbeatFailedRetry, "heartbeat-failed-retry", 3, "failed probes in a row that make a server unhealthy")
	f.IntVar(&c.HeartbeatHealthyThreshold, "heartbeat-healthy-threshold", 2,
		"good probes in a row that make it healthy again")
}
