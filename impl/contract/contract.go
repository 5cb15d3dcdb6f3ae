// Package contract holds every name that Weir puts on a wire or expects there, once.
//
// Names that the OpenYurt documents use are kept as they are, so that labels, documents and habits
// carry over (apps.openyurt.io, openyurt.io/…, leader-informer-sync, ports 10261–10270). Names that
// are Weir's own begin with "weir" or "Weir-". The package holds constants and the few one-line
// functions that build or take apart such names; it starts no goroutine and imports nothing of Weir's.
package contract

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// PodsAddress is the address of a node at which its pods reach their hub, at HubSecurePort: a link-local one, the same
// on each node, which is OpenYurt's, too.
const PodsAddress = "169.254.2.1"

// UserAgent is how a hub names itself in requests of its own.
const UserAgent = "weir-hub"

// Ports, as in OpenYurt.
const (
	HubProxyPort    = 10261 // plain HTTP, off by default and without identity
	HubHealthPort   = 10267 // health, metrics and status of a hub
	HubSecurePort   = 10268 // the one TLS door of a node to the Kubernetes API
	HubPoolPort     = 10269 // TLS: what a hub shows to its pool
	CoordinatorPort = 10270 // TLS of a coordinator
	PeerPort        = 10271 // of the etcd of a coordinator that is one of several
	GatePort        = 10273 // TLS: the relay beside kube-apiserver
	HubImagesPort   = 10272 // plain HTTP on loopback: the mirror of registries for the containerd of the node
	NodeUserPrefix  = "system:node:"
	NodesGroup      = "system:nodes"
	HubGroup        = "openyurt:yurthub" // organization of the certificates of hubs in their pool
	// organization of a hub certificate at its pool's coordinator: weir:pool:<pool>.
	PoolGroupPrefix = "weir:pool:"
	ViewerGroup     = "weir:viewers"   // read-only access to a coordinator
	OperatorGroup   = "weir:operators" // the same, and may clear or delete the Leases of the pool there
	// organization that a hub's certificate has besides if its Node has LeaderLabel.
	LeaderGroup = "weir:leaders"
	// organization of the certificate by which one replica of a coordinator knows another.
	ReplicaGroup       = "weir:coordinators"
	ReplicaUserPrefix  = "weir:coordinator:" // of its common name, see ReplicaUser
	NodePoolLabel      = "apps.openyurt.io/nodepool"
	NodeLeaseNamespace = "kube-node-lease"
)

// Certificates, see package pki.
const (
	HubUserPrefix = "weir:hub:" // of a hub's own user at the cloud: weir:hub:<pool>:<node>
	// common name of a coordinator's serving certificate; clients go by its addresses.
	CoordinatorName = "weir-coordinator"
	HubName         = "weir-hub" // the same of a hub
	// of the common name of a node's own authority: weir:node-authority:<node>.
	NodeAuthorityPrefix  = "weir:node-authority:"
	BootstrapUserPrefix  = "system:bootstrap:" // user of a bootstrap token: system:bootstrap:<id of the token>
	BootstrapGroupPrefix = "system:bootstrappers:weir:"
	// SignerPrefix and the kind of an identity are the name of a signer of CertificateSigningRequests that weir-manager
	// is.
	SignerPrefix = "weir.dev/"
	// CloudSigner signs what kube-apiserver trusts. weir-manager approves requests to it, and kube-controller-manager
	// signs.
	CloudSigner = "kubernetes.io/kube-apiserver-client"
	// KubeletSigner signs what a node shows kube-apiserver. kube-controller-manager approves requests of nodes for
	// themselves, where the cluster lets it, and signs.
	KubeletSigner = "kubernetes.io/kube-apiserver-client-kubelet"
	// KeyNamespace holds the keys of the pools' authorities.
	KeyNamespace = "weir-pki"
	// AuthorityPrefix and the name of a pool are a Secret in KeyNamespace, its authority, and a ConfigMap: those that
	// count, as a file under AuthorityKey, and signed under TrustKey.
	AuthorityPrefix = "pool-"
	AuthorityKey    = "ca.crt"
	TrustKey        = "trust"
	// RotateAnnotation of that ConfigMap asks weir-manager to replace the authority, see manager/certificates;
	// RotationAnnotation tells how far that is.
	RotateAnnotation   = "weir.dev/rotate"
	RotationAnnotation = "weir.dev/rotation"
	// DenylistPrefix and the name of a pool are a ConfigMap in KeyNamespace. Under DenylistKey it has the certificates
	// that are refused, signed.
	DenylistPrefix = "denylist-"
	DenylistKey    = "list"
	// DirectoryKey is of what hubs give back of what the pool is told about itself.
	DirectoryKey = "directory"
	// ReturnedPrefix and the name of a pool are a ConfigMap there in which hubs give back, under DenylistKey and TrustKey,
	// what a cloud that was restored from a backup has forgotten.
	ReturnedPrefix = "returned-"
	// RosterPrefix and the name of a pool are a ConfigMap there with the nodes that the pool has: weir-manager sees by it
	// who left.
	RosterPrefix = "nodes-"
	// HoldsAnnotation of a Node is what its hub holds, see package digest.
	HoldsAnnotation = "weir.dev/holds"
	// DigestAnnotation of a node's Lease is what its hub tells of itself with a heartbeat, see package digest.
	DigestAnnotation = "weir.dev/digest"
	// ReadsAnnotation of a node's Lease is what its clients read of the whole cluster, see package digest.
	ReadsAnnotation = "weir.dev/reads"
	// AnchorAnnotation of a node's Lease is where the chain of its hub begins, see package heartbeat.
	AnchorAnnotation = "weir.dev/anchor"
	// HeardPrefix and the name of a pool are a Lease in KeyNamespace. The leader of the pool reports in its holderIdentity
	// which nodes it has heard, and weir-manager answers with a receipt in ReceiptAnnotation: see package heartbeat.
	HeardPrefix       = "weir-heard-"
	ReceiptAnnotation = "weir.dev/receipt"
	// SumBytes is the length of the sum of a pool's signed documents in a receipt: see package bulletin.
	SumBytes = 6
	// RestrictedPrefix is of labels of Nodes that say what a node may do in its pool. Kubelets cannot write them, and
	// nobody without the right to assign.
	RestrictedPrefix = "weir.node-restriction.kubernetes.io/"
	// CoordinatorLabel of a Node says which replica of its pool's coordinator runs there.
	CoordinatorLabel = RestrictedPrefix + "coordinator"
	// LeaderLabel of a Node, with the value "true", says that its hub may lead its pool where coordinators have
	// --leaders-only.
	LeaderLabel = RestrictedPrefix + "leader"
)

// BootstrapGroup is the extra group of a bootstrap token that is of one node: Kubernetes allows neither dots nor
// capitals in it.
func BootstrapGroup(pool, node string) string {
	return fmt.Sprintf("%s%x", BootstrapGroupPrefix, sha256.Sum256([]byte(pool+"/"+node)))
}

// ManagedReplica is the value of --coordinator-replica by which a hub knows that weir-manager runs the coordinator of
// its node.
const ManagedReplica = "weir-manager"

// ReplicaName is the name of a replica that weir-manager runs on a node: of its certificate, in the label
// CoordinatorLabel of the Node, and among the other replicas.
func ReplicaName(node string) string {
	return fmt.Sprintf(ManagedReplica+"-%x", sha256.Sum256([]byte(node)))[:len(ManagedReplica)+1+20]
}

// ReplicaUser is the common name of the certificate by which one replica of a pool's coordinator knows another. It
// names the pool, because etcd looks at nothing else.
func ReplicaUser(pool, name string) string { return ReplicaUserPrefix + pool + ":" + name }

// Delegated heartbeats. The annotation stands on a node's Lease in kube-node-lease: in the coordinator while the node's
// hub cannot reach the cloud, in the cloud while the leader of its pool forwards its heartbeats. Without it the node
// speaks for itself.
const (
	DelegateHeartbeat    = "openyurt.io/delegate-heartbeat"
	Delegated            = "true" // the only value of DelegateHeartbeat
	ForwarderGroup       = "weir:forwarders"
	ForwarderGroupPrefix = "weir:forwarders:" // weir:forwarders:<pool>
	// common name of the certificate that a leader forwards with: weir:forwarder:<pool>:<node>; grants on the Leases of
	// the pool's nodes are bound to it.
	ForwarderUserPrefix = "weir:forwarder:"
	ForwarderRolePrefix = "weir-forwarder-" // Role and RoleBinding in kube-node-lease: weir-forwarder-<pool>
)

// Leases of a pool, kept in its coordinator.
const (
	LeaseNamespace = "kube-system"
	ElectionLease  = "yurthub"              // hubs stand for leader on it
	InformerSync   = "leader-informer-sync" // renewed by the leader only while its own streams from the cloud are fresh
	EndpointSlices = "endpointslices"
	DiscoveryGroup = "discovery.k8s.io"
)

// MaxLeaseDuration is the longest for which a hub may hold a Lease of the pool without a renewal: a coordinator refuses
// more, and ignores what it finds.
const MaxLeaseDuration = time.Minute

// PoolAddress is an annotation of the election Lease and of a node's Lease in a coordinator: the IP address and port at
// which the hub that wrote it shows its relays to its pool, or PoolAddressReverse.
const PoolAddress = "weir/pool-address"

// PoolAddressReverse says that a node accepts no connection from its pool: its hub connects to the coordinator, and
// shows its relays over that connection.
const PoolAddressReverse = "reverse"

// ParsePoolAddress reads a value of PoolAddress. An address that is no node's, or means another machine wherever it is
// read, is none: link-local ones are where clouds keep the credentials of machines, and a hub its pods.
func ParsePoolAddress(s string) (a netip.AddrPort, reverse bool, err error) {
	if s == PoolAddressReverse {
		return a, true, nil
	}
	a, err = netip.ParseAddrPort(s)
	a = netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
	at := a.Addr()
	if err != nil || a.Port() == 0 || at.Zone() != "" || at.IsUnspecified() || at.IsMulticast() ||
		at.IsLinkLocalUnicast() {
		return netip.AddrPort{}, false, fmt.Errorf("%q: want the IP address of a node and a port, as in 10.0.0.7:%d, or %s",
			s, HubPoolPort, PoolAddressReverse)
	}
	return a, false, nil
}

// IsLoopback reports whether an address and port, as of an HTTP request, is one of each machine.
func IsLoopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// Paths and headers inside a pool. All are read; who shows relays shows them at the paths of the Kubernetes API.
const (
	// of a hub: an answer that lasts as long as the hub lives, for the coordinator that reads it.
	PulsePath     = "/weir/v1/pulse"
	DocumentsPath = "/weir/v1/documents" // of a hub and of a coordinator: copies of API discovery, see impl/documents
	DoubtPath     = "/weir/v1/doubt"     // of a coordinator: POST of a Doubt by a hub that follows and reaches the cloud
	// of a coordinator, and of a hub: which authorities are trusted, and POST by the one that knows better, see
	// impl/trust.
	TrustPath = "/weir/v1/trust"
	// of a coordinator, and of a hub: which certificates are refused, and POST by the one that knows better, see
	// impl/trust.
	DenylistPath = "/weir/v1/denylist"
	// of a hub: a Standing at each change, for as long as the one that asked is there, see impl/hub/pooldoor.
	StandingPath = "/weir/v1/standing"
	// of a hub and of a coordinator: what the pool is told about itself, see impl/directory.
	DirectoryPath = "/weir/v1/directory"
	// of a coordinator, and of a leader hub: PUT of the entry of a node by its hub, and POST of a notice by the leader,
	// which collects the entries: see impl/heartbeat.
	RollPath = "/weir/v1/roll"
	// of a coordinator, and of a leader hub: POST by a hub that hands in what it says of its moved pods, and reads what
	// others say: see impl/exchange.
	MovedPath = "/weir/v1/moved"
	// of a coordinator, and of a leader hub: POST by a hub that asks who has content of images, and says what it has: see
	// impl/exchange.
	ImagesPath = "/weir/v1/images"
	// ImagesBlobsPath and a digest are content of images that a hub shows to the other hubs of its pool.
	ImagesBlobsPath = ImagesPath + "/blobs/"
	// of a coordinator: POST by a hub that the coordinator cannot connect to, see impl/source/hop.
	LinePath = "/weir/v1/line"
	// of weir-gate: POST by the hub that leads a pool, which then carries connections into the pool, see impl/reverse.
	ReversePath = "/weir/v1/reverse"
	// of weir-gate: what authorization is asked about, with the verb connect, for CONNECT, which has no path.
	ConnectPath = "/weir/v1/connect"
	// of weir-gate: what is asked about as well, for what is of no pool.
	StraightPath = "/weir/v1/connect/straight"
	// GET by a replica at another one's address for etcds: whether it is met as impl/coordinator/store does.
	MeshPath   = "/weir/v1/mesh"
	RejoinPath = "/weir/v1/rejoin" // POST by a replica that has no data: take it in again
	// JSON status of a hub (health port; less of it at the port for its pool) or coordinator.
	StatusPath = "/weir/v1/status"
	// ReachPath is of a coordinator, and of a leader hub: POST by a hub, which is called back; see impl/exchange.
	ReachPath = "/weir/v1/reach"
	// MeshCertificate is a header of the answer at MeshPath: which certificate is shown to those who connect now.
	MeshCertificate = "Weir-Mesh-Certificate"
	// AgeHeader of an answer: seconds since the relay was last known to be fresh, also when that was before a restart.
	AgeHeader = "Weir-Age"
	// ConsistentHeader of a read, with the value true: only the cloud may answer it, as it stands now, and nothing that is
	// kept in the pool.
	ConsistentHeader = "Weir-Consistent"
)

// Doubt is what a hub says to its coordinator, and a coordinator asks its hubs: whether the cloud contradicts what the
// leader fed.
type Doubt struct {
	Leader    string `json:"leader"`   // node
	Resource  string `json:"resource"` // endpointslices.v1.discovery.k8s.io
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`      // of the object that was compared; "": the version alone was
	Held      uint64 `json:"held,omitempty"`      // version of the object as the leader fed it
	Confirmed bool   `json:"confirmed,omitempty"` // of what a hub says: the cloud contradicts, when asked twice
}

// Standing is how a hub stands in a pool without a coordinator.
type Standing struct {
	Leader bool `json:"leader"` // it is a leader hub that hears the cloud
	Fresh  bool `json:"fresh"`  // and all that it shows is fresh
}

// PulseSilence is how long a coordinator may hear nothing of the leader's hub before it takes the election Lease from
// it.
const PulseSilence = 3 * time.Second

// Term orders the leaders of a pool: Incarnation names the life of the coordinator's etcd (a new one
// after its disk is lost), Version is the resourceVersion of the election Lease at acquisition.
type Term struct {
	Incarnation string
	Version     uint64
}

// String is "<incarnation>/<version>".
func (t Term) String() string { return t.Incarnation + "/" + strconv.FormatUint(t.Version, 10) }

// NodeOfIdentity returns the node name of a leader identity "<node>_<random>". Identities carry a random
// part so that two hubs started under one name never both believe they lead.
func NodeOfIdentity(id string) string {
	node, _, _ := strings.Cut(id, "_")
	return node
}

// Of nodes that the cloud cannot hear.
const (
	// CutOffTaint (effect NoSchedule, value "true") and CutOffCondition are of a node whose heartbeats are delegated. The
	// condition is True then, Unknown while the whole pool is silent, and False once the node speaks for itself again.
	CutOffTaint     = "node.openyurt.io/unschedulable"
	CutOffCondition = "WeirCutOff"
	// CertificatesCondition is True of a node of which a certificate, or the authority of its pool, ends soon, and False
	// once it has a successor.
	CertificatesCondition = "WeirCertificateEnds"
	// Its reasons, which are those of Events, too.
	CertificateEndsSoon = "CertificateEndsSoon"
	CertificateEnded    = "CertificateEnded"
	AuthorityEndsSoon   = "AuthorityEndsSoon"
	AuthorityEnded      = "AuthorityEnded"
	CertificatesRenewed = "CertificatesRenewed"

	// JoinedCondition is True of a node whose kubelet calls its own hub, and False while it does not, though somebody has
	// tried: see package install.
	JoinedCondition = "WeirJoined"

	// Annotations of a Node whose pods stay on it whatever happens ("true"), or for a time (a duration; 0: for ever). The
	// first is understood on a pod as well.
	BindingAnnotation          = "apps.openyurt.io/binding"
	AutonomyAnnotation         = "node.beta.openyurt.io/autonomy"
	AutonomyDurationAnnotation = "node.openyurt.io/autonomy-duration"

	// ConfigMaps in ManagerNamespace. Their keys are names of nodes, written by weir-manager for the admission policies of
	// its manifests.
	ManagerNamespace = "kube-system"
	KeptNodes        = "weir-kept-nodes"
	BoundNodes       = "weir-bound-nodes"
	RevokedNodes     = "weir-revoked-nodes"

	// CoordinatorImages is another one there. Under CoordinatorImagesKey it has the images of coordinators that
	// weir-manager may run, one in a line. The administrator of the cluster writes it. Under CoordinatorImagesRelease the
	// chart has the image of its release. weir-manager may run it, too, and does for Pools that name none.
	CoordinatorImages        = "weir-coordinator-images"
	CoordinatorImagesKey     = "images"
	CoordinatorImagesRelease = "release"
	// PullSecretsKey has the names of Secrets in ManagerNamespace by which kubelets pull the images of the list that it
	// stands in, this one or InstallerImages, one in a line. None: as the ServiceAccount default there says.
	PullSecretsKey = "pullSecrets"
)

// Labels of what weir-manager makes.
const (
	ManagedLabel    = "app.kubernetes.io/managed-by"
	ManagedBy       = "weir-manager"
	NameLabel       = "app.kubernetes.io/name"
	CoordinatorPods = "weir-coordinator" // value of NameLabel
)

// Of the Jobs by which weir-manager leads the kubelets of nodes to their hubs, and back: see package manager/jobs.
const (
	// InstallerName is the NameLabel of these Jobs and of their Pods, what their names begin with, and the unit by which a
	// machine does the work.
	InstallerName = "weir-installer"
	// InstallerImages is a ConfigMap in ManagerNamespace. Under InstallerImagesKey it has the images that these Jobs may
	// run, one in a line; weir-manager runs the first. None: no Job is begun. The administrator of the cluster writes it,
	// by the chart for example.
	InstallerImages    = "weir-installer-images"
	InstallerImagesKey = "images"
	// InstallNode and InstallPool are annotations of such a Job: its node, and the pool that the node is to be in; "":
	// none.
	InstallNode = "weir.dev/install-node"
	InstallPool = "weir.dev/install-pool"
	// InstallStalled and InstallTries are annotations of a Job that stands, suspended, for one that made no progress: why
	// it made none, and how often in a row the node was tried without touching its machine. Without the second a Pod had
	// begun.
	InstallStalled = "weir.dev/install-stalled"
	InstallTries   = "weir.dev/install-tries"
)

// Of the Jobs by which weir images pull brings images to nodes: see package nodejob.
const (
	// PreloadName is the NameLabel of these Jobs and of their Pods, and what their names begin with.
	PreloadName = "weir-preload"
	// PreloadNow is an annotation of one that runs at any hour.
	PreloadNow = "weir.dev/preload-now"
	// HubProgram is the program of the hub on the disk of a node that has joined.
	HubProgram = "/usr/local/lib/weir/weir-hub"
)

// LeaderHubPrefix and the name of a pool are a Service, Endpoints and an EndpointSlice in ManagerNamespace with the
// leader hubs of the pool (seed 003). Annotations of them report whether its nodes reach each other ("true", "false"),
// and what it shares (group/version/resource, with commas between).
const (
	LeaderHubPrefix       = "leader-hub-"
	LeaderHubConnectivity = "openyurt.io/interconnectivity"
	LeaderHubScope        = "openyurt.io/pool-scope-metadata"
	// LeaderHubMode tells how the pool shares: by its coordinator, or by its leader hubs. Without it: by the coordinator,
	// if LeaderHubCoordinators names one.
	LeaderHubMode   = "weir.dev/mode"
	ModeCoordinator = "coordinator"
	ModeLeaderHubs  = "leader-hubs"
	// LeaderHubCoordinators tells where the replicas of the pool's coordinator are: https URLs, with commas between, as
	// --coordinator-server takes them.
	LeaderHubCoordinators = "weir.dev/coordinators"
	// LeaderHubReplicas tells which replicas of a coordinator weir-manager runs, ready or not: <placement>/<node>/<IP
	// address>, with commas between. Hubs of those nodes get the certificates; replicas meet each other by it, and one
	// that is not there any more elects nobody.
	LeaderHubReplicas = "weir.dev/coordinator-replicas"
	// LeaderHubAllowance tells for how long after its end a certificate of the pool is valid inside it, to read, while
	// there is no sign of the cloud: a duration, 0 to OfflineAllowance. Without it: OfflineAllowance.
	LeaderHubAllowance = "weir.dev/offline-allowance"
	// LeaderHubImages tells how the images of registries are shared inside the pool: <registry>=<sharing>, with commas
	// between. AnyRegistry is all that are not named. Without it all are shared.
	LeaderHubImages = "weir.dev/images"
	// LeaderHubGate tells where weir-gate is, as https://host:port, if the cloud has one, and LeaderHubGateCA the
	// authorities of its certificate, as PEM.
	LeaderHubGate   = "weir.dev/gate"
	LeaderHubGateCA = "weir.dev/gate-ca"
	// LeaderHubGateWays tells how many replicas of weir-gate the leader keeps a connection to, by which the cloud reaches
	// into the pool. Without it: none.
	LeaderHubGateWays = "weir.dev/gate-ways"
	// LeaderHubReach tells what weir-gate may reach in the pool, beside the kubelets of its nodes: networks and their
	// ports, as impl/reverse writes them, with commas between: 10.0.9.7/32,10.244.0.0/16:8000-8100,fd00:1::/64:8080.
	// A network without ports is all ports of it. Without it: the kubelets alone.
	LeaderHubReach = "weir.dev/reach"
	AnyRegistry    = "*"
	ImagesEnabled  = "enabled"
	ImagesJudged   = "judged"   // the registry is asked at each pull, while the cloud is there
	ImagesDisabled = "disabled" // each node pulls them for itself
	// LeaderHubSigned is all of this as weir-manager has signed it by the pool's authority: what hubs and coordinators go
	// by, see impl/directory. Without it they go by their flags.
	LeaderHubSigned = "weir.dev/signed-directory"
	// LeaderHubPort is the name of the port of the leader hubs there.
	LeaderHubPort = "pool"
)

// OfflineAllowance is the longest such duration. What is revoked is remembered for as long, and no longer.
const OfflineAllowance = 90 * 24 * time.Hour

// PoolGroup and the kind Pool, version v1alpha1, are Weir's own object beside a NodePool of the same name: what a
// NodePool has no field for.
const PoolGroup = "weir.dev"

// PoolAttributes is an annotation of a Node that records which labels, annotations and taints of its NodePool
// weir-manager has put there: see package pools.
const PoolAttributes = "weir.dev/pool-attributes"

// PoolDescribed is an annotation of a Node with such a record. kube-apiserver itself writes it, by a policy of
// weir-manager's manifests, if there is a NodePool of the Node's pool.
const PoolDescribed = "weir.dev/pool-described"

// Of Services, for response filters.
const (
	// TopologyKeys is an annotation of a Service whose endpoints are to be used from near only: by HostnameTopology on the
	// same node, by PoolTopology or ZoneTopology in the same pool.
	TopologyKeys     = "openyurt.io/topologyKeys"
	HostnameTopology = "kubernetes.io/hostname"
	PoolTopology     = "openyurt.io/nodepool"
	ZoneTopology     = "kubernetes.io/zone"
	// TopologyLabel says the same as a label ("node" or "pool"), which the cloud copies to the Service's slices, so that
	// nothing has to be looked up.
	TopologyLabel = "weir/topology"
	// DiscardService ("true") is an annotation of a Service of type LoadBalancer that is of no use at the edge.
	DiscardService = "svc.openyurt.io/discard"
)
