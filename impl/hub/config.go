package hub

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/listen"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/member"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/store"
)

// Config is what a hub is made of. Each field is the flag of the same name; see Flags for their meaning and defaults.
type Config struct {
	NodeName, NodePoolName string

	CloudServers        []string
	ClassServers        []string // "class=URL"
	CloudCAFile         string
	CloudClientCertFile string
	CloudClientKeyFile  string
	// CloudClientKubeconfig is the kubelet's, which says what those above do not.
	CloudClientKubeconfig string
	CloudPostQuantum      bool

	BindAddress       string
	SecurePort        int // 0: any free one
	TLSCertFile       string
	TLSPrivateKeyFile string
	TLSHosts          []string
	NodeAuthorityFile string // "": the node's authority is shown nowhere
	ClientCAFiles     []string
	HealthBindAddress string
	HealthPort        int // 0: any free one
	ProxyPort         int // 0: none

	Anonymous       bool
	CallerRate      int   // 0: the default
	CallersMaxBytes int64 // 0: the default

	DataDir string

	StoreMaxBytes                                 int64
	StoreEvery, StoreLazy, StoreIdle, StoreForget time.Duration
	StoreKeyFile                                  string // "": the credential, else the generated one
	StoreGeneratedKeyFile                         string // "": none is generated
	StorePlaintextSecrets                         bool   // nothing is encrypted
	Credentials                                   string // the folder of systemd's credentials; "": there is none
	OfflineTokenAllowance                         time.Duration
	OfflineAccess                                 time.Duration // 0: identity.DefaultTTL
	ReturnSpread                                  time.Duration

	PodsAddress          string        // "": pods are not led to the hub
	PodsWait             time.Duration // 0: pods.DefaultWait
	KubeProxyConfigMap   string        // "": kube-proxy's kubeconfig is left alone
	Filters              []string      // none: all see what the cloud shows
	MasterServiceAddress string

	PoolScopeResources   []string
	UpstreamWatchTimeout time.Duration
	MaxStaleRead         time.Duration // 0: no limit
	RingBytes            int64
	RelayMaxBytes        int64 // 0: the relay's default
	RingAge              time.Duration

	EnableCoordinator     bool
	CoordinatorServers    []string
	LeaderHubs            []string // node=IP:port; none: the pool has a coordinator
	CoordinatorCAFile     string
	BootstrapTokenFile    string // "": the hub asks for its certificate in the pool as its node
	EnrolCoordinatorDir   string // "": no coordinator on this node that the hub gets certificates for
	EnrolCoordinatorHosts []string
	CoordinatorReplica    string // "": it is the only one
	CoordinatorWait       time.Duration
	PoolBindAddress       string // "": all
	PoolPort              int    // 0: any free one
	PoolAddress           string // "": it is found out

	FailoverGracePeriod, FailoverSpread time.Duration

	LeaderElectLeaseDuration, LeaderElectRenewDeadline, LeaderElectRetryPeriod time.Duration

	HeartbeatInterval, HeartbeatTimeout             time.Duration
	HeartbeatFailedRetry, HeartbeatHealthyThreshold int

	Logger *slog.Logger
	Net    Net // nil: the system's

	clock clock.WithTickerAndDelayedExecution // of tests: that of this machine; nil: the system's
	// of tests, for an answer: a machine that is busy is not a server that is away; 0: the pace at which it is asked.
	patience time.Duration
}

// Net is the network that a hub is on. Tests put hubs on one in memory.
type Net interface {
	uplink.Dials
	listen.Net
}

const keepAlive = 30 * time.Second

// systemNet is the network of the operating system.
type systemNet struct{}

func (systemNet) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{KeepAlive: keepAlive}).DialContext(ctx, network, address)
}

func (systemNet) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(ctx, network, address)
}

// settings is a Config that was checked.
type settings struct {
	Config
	resources    []relay.Resource
	servers      map[uplink.Class][]*url.URL
	coordinators []*url.URL // none without a coordinator
	leaders      []directory.Leader
}

func (s *settings) storeConfig() store.Config {
	return store.Config{
		Dir: filepath.Join(s.DataDir, "store"), MaxBytes: s.StoreMaxBytes, Every: s.StoreEvery, Lazy: s.StoreLazy,
		Idle:   s.StoreIdle,
		Forget: s.StoreForget, Logger: s.Logger,
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

// limit is for an answer to a question that is asked at a pace.
func (s *settings) limit() time.Duration { return cmp.Or(s.patience, s.HeartbeatTimeout) }

func (s *settings) role(identity string) role.Config {
	if identity == "" {
		identity = s.NodeName + "_"
	}
	return role.Config{
		Identity: identity, LeaseDuration: s.LeaderElectLeaseDuration, RenewDeadline: s.LeaderElectRenewDeadline,
		RetryPeriod: s.LeaderElectRetryPeriod, Wait: s.CoordinatorWait,
		Grace: s.FailoverGracePeriod, Spread: s.FailoverSpread,
	}
}
