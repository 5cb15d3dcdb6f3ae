package coordinator

import (
	"log/slog"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/coordinator/store"
)

// Values of Config.ClusterState.
const (
	ClusterNew      = "new"
	ClusterExisting = "existing"
)

// Config is what a coordinator is made of. Each field is the flag of the same name; see Run for their meaning and
// defaults.
type Config struct {
	NodePoolName string

	BindAddress     string
	SecurePort      int // 0: any free one
	DataDir         string
	CertificatesDir string // that the hub of this node fills
	LeadersOnly     bool
	Placement       store.Placement

	PoolScopeResources []string      // none: directory.DefaultScope
	Linger             time.Duration // after its last reader a resource is relayed so long; 0: always
	RingBytes          int64         // 0: the relay's default
	RelayMaxBytes      int64         // likewise
	RingAge            time.Duration // likewise; no flag
	FreshWithin        time.Duration

	// Of one of several replicas.
	Name           string
	InitialCluster []string // name=URL
	ReplicaServers []string // name=URL
	ClusterToken   string   // names all of them together; "": by the name of the pool
	ClusterState   string   // "": ClusterNew

	Clock  clock.WithTickerAndDelayedExecution // for tests; nil: the real one
	Logger *slog.Logger                        // nil: slog.Default()
}
