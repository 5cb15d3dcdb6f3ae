package hub

import (
	"cmp"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/store"
)

// Config is what a hub is made of. See bind for the flags, which have the names of these fields, and their defaults.
type Config struct {
	NodeName, NodePoolName string
	DataDir                string
	// EtcDir has what the owner of the machine and the hub lay beside its configuration: see the names of its files.
	EtcDir string

	Cloud
	Doors
	Callers
	Storage
	Pods
	Relays
	Pool
	Beside
	Probes
	Images pooldoor.MirrorOptions // the mirror of registries for the node

	Logger *slog.Logger
	Net    Net // nil: the system's

	clock   clock.WithTickerAndDelayedExecution // of tests: that of this machine; nil: the system's
	kubelet string                              // of tests: where this node's is; "": shelter.KubeletAddress
	// of tests, for an answer: a machine that is busy is not a server that is away; 0: the pace at which it is asked.
	patience time.Duration
}

// Files of EtcDir.
const (
	cloudCA        = "cloud-ca.crt"       // authorities of the kube-apiserver's certificate, without a kubeconfig
	servingPair    = "serving.pem"        // the hub's key and certificate, if it is not of this node's own authority
	nodeAuthority  = "node-authority.crt" // that authority, which the hub shows here
	storeKey       = "store.key"          // which the hub makes if no other key is given
	poolCA         = "pool-ca.crt"        // authorities of the pool, until the cloud or the pool tells others
	bootID         = "boot-id"            // which boot of this machine it is, in the place of what the kernel says
	bootstrapToken = "bootstrap-token"    // by which the hub asks for its first certificate; without it, as its node
)

// inEtc is how errors, the status and metrics name a file of EtcDir.
func inEtc(name string) string { return name + " in --etc-dir" }

// etc is the path of a file of EtcDir.
func (c *Config) etc(name string) string { return filepath.Join(c.EtcDir, name) }

// given reports whether there is such a file.
func (c *Config) given(name string) bool {
	_, err := os.Lstat(c.etc(name))
	return err == nil
}

// Cloud is where the cloud is, and who this node is there.
type Cloud struct {
	CloudServers        []string // "URL", or "class=URL" for one class of traffic
	CloudClientCertFile string   // key and certificate
	// CloudClientKubeconfig is the kubelet's, which says what those above and cloudCA do not.
	CloudClientKubeconfig string
	NodeStatusPeriod      time.Duration // 0: each status of the node is passed on
}

// Doors are where the hub serves its node, and what it shows there.
type Doors struct {
	BindAddress       string
	SecurePort        int // 0: any free one
	TLSHosts          []string
	ClientCAFiles     []string
	HealthBindAddress string
	HealthPort        int // 0: any free one
	ProxyPort         int // 0: none
}

// Callers is what others than this node may do.
type Callers struct {
	Anonymous             bool
	CallerRate            int   // 0: the default
	CallersMaxBytes       int64 // 0: the default
	OfflineTokenAllowance time.Duration
	OfflineAccess         time.Duration // 0: identity.DefaultTTL
}

// Storage is what is kept for the time without the cloud. The times are constants, see Default.
type Storage struct {
	StoreMaxBytes                                 int64
	StoreKeyFile                                  string // "": the credential, else storeKey; NoKey: none
	Credentials                                   string // the folder of systemd's credentials; "": there is none
	StoreEvery, StoreLazy, StoreIdle, StoreForget time.Duration
	ReturnSpread                                  time.Duration
}

// NoKey is the StoreKeyFile of a hub that encrypts nothing.
const NoKey = "none"

// Pods is what pods of this node, and components beside them, see of the hub.
type Pods struct {
	PodsAddress          string        // "": pods are not led to the hub
	PodsWait             time.Duration // 0: pods.DefaultWait
	Filters              []string      // none: all see what the cloud shows
	MasterServiceAddress string
}

// Relays is what the pool keeps one copy of. The times and sizes are constants, see Default.
type Relays struct {
	PoolScopeResources   []string
	Linger               time.Duration // after its last reader a resource is relayed so long; 0: always
	UpstreamWatchTimeout time.Duration
	MaxStaleRead         time.Duration // 0: no limit
	RingAge              time.Duration // 0: the relay's default
}

// Pool is the pool that the hub takes part in, if it does.
type Pool struct {
	EnableCoordinator   bool
	CoordinatorServers  []string
	LeaderHubs          []string      // node=IP:port; none: the pool has a coordinator
	CoordinatorWait     time.Duration // a constant, see Default
	PoolBindAddress     string        // "": all
	PoolPort            int           // 0: any free one
	PoolAddress         string        // "": it is found out
	FailoverGracePeriod time.Duration

	LeaderElectLeaseDuration, LeaderElectRenewDeadline, LeaderElectRetryPeriod time.Duration
}

// Beside is the coordinator on this node, if there is one.
type Beside struct {
	EnrolCoordinatorDir   string // "": no coordinator on this node that the hub gets certificates for
	EnrolCoordinatorHosts []string
	CoordinatorReplica    string // "": it is the only one
}

// Probes is how servers are asked whether they are there.
type Probes struct {
	HeartbeatInterval, HeartbeatTimeout             time.Duration
	HeartbeatFailedRetry, HeartbeatHealthyThreshold int
}

// Default has what no flag of weir-hub sets. Other values only break something:
//
//   - What the disk is written at (StoreEvery to StoreForget) is what a power cut may cost, against the life of a flash
//     disk. Package store argues it.
//   - Nodes that come back to the cloud together are spread over ReturnSpread. It is less than a kubelet's heartbeat.
//   - A watch at the cloud (UpstreamWatchTimeout) tells at its end that a quiet resource is fresh. A relay counts as
//     fresh for 2.5 of them, a read waits for MaxStaleRead at most: both have to stay below the 50 s after which
//     Kubernetes calls a node dead.
//   - A client that was away for longer than a relay's RingAge lists, as at kube-apiserver.
//   - A hub that starts waits for CoordinatorWait before it lists from the cloud: a coordinator that starts beside it
//     has to be ready by then.
func Default() Config {
	return Config{
		Storage: Storage{
			StoreEvery: 5 * time.Second, StoreLazy: time.Minute, StoreIdle: 10 * time.Minute, StoreForget: 30 * 24 * time.Hour,
			ReturnSpread: 5 * time.Second,
		},
		Relays: Relays{
			Linger: scope.DefaultLinger, UpstreamWatchTimeout: 10 * time.Second, MaxStaleRead: 30 * time.Second,
			RingAge: 5 * time.Minute,
		},
		Pool: Pool{CoordinatorWait: 10 * time.Second},
	}
}

// Net is the network that a hub is on. Tests put hubs on one in memory.
type Net interface {
	uplink.Dials
	door.Net
}

// settings is a Config that was checked.
type settings struct {
	Config
	serves       bool // a certificate that was given, and not one of this node's own authority
	resources    []relay.Resource
	always       []string // those of them that are relayed though nobody reads them
	servers      map[uplink.Class][]*url.URL
	coordinators []*url.URL // none without a coordinator
	leaders      []directory.Leader
}

// config is that of a store in a folder.
func (s *Storage) config(dir string) store.Config {
	return store.Config{
		Dir: filepath.Join(dir, "store"), MaxBytes: s.StoreMaxBytes, Every: s.StoreEvery, Lazy: s.StoreLazy,
		Idle: s.StoreIdle, Forget: s.StoreForget,
	}
}

func (s *settings) filterConfig() filter.Config {
	return filter.Config{
		Enabled: s.Filters, MasterService: s.MasterServiceAddress, Node: s.NodeName, Pool: s.NodePoolName, Logger: s.Logger,
	}
}

func (s *settings) policy() member.Probing {
	return member.Probing{
		Interval: s.HeartbeatInterval, Timeout: s.HeartbeatTimeout, Failures: s.HeartbeatFailedRetry,
		Healthy: s.HeartbeatHealthyThreshold,
		Away:    s.HeartbeatInterval / 2, Confirm: s.HeartbeatTimeout / 2, Limit: s.limit(),
	}
}

// maxAge is how long ago a stream from the cloud may have given its last sign to be fresh.
func (s *settings) maxAge() time.Duration { return s.UpstreamWatchTimeout * 5 / 2 }

// limit is for an answer to a question that is asked at a pace.
func (s *settings) limit() time.Duration { return cmp.Or(s.patience, s.HeartbeatTimeout) }

func (s *settings) role(identity string) role.Config {
	if identity == "" {
		identity = s.NodeName + "_"
	}
	return role.Config{
		Identity: identity, LeaseDuration: s.LeaderElectLeaseDuration, RenewDeadline: s.LeaderElectRenewDeadline,
		RetryPeriod: s.LeaderElectRetryPeriod, Wait: s.CoordinatorWait,
		Grace: s.FailoverGracePeriod, Spread: s.FailoverGracePeriod,
	}
}
