package manager

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/manager/gates"
	"github.com/weir-edge/weir/impl/manager/verdict"
)

const (
	electionName      = "weir-manager"
	requestsPerSecond = 50 // of the manager to the API, when many nodes change at once
	requestsAtOnce    = 100
)

// Values of --certificates.
const (
	noCertificates      = "off"
	approveCertificates = "approve"
	signCertificates    = "sign"
)

var certificateModes = []string{noCertificates, approveCertificates, signCertificates}

// Config is what a manager is made of. Each field is the flag of the same name; see bind for their meaning and
// defaults.
type Config struct {
	Kubeconfig string

	LeaderElect              bool
	LeaderElectLeaseDuration time.Duration
	LeaderElectRenewDeadline time.Duration
	LeaderElectRetryPeriod   time.Duration

	MetricsBindAddress     string
	HealthProbeBindAddress string

	NodeMonitorGracePeriod time.Duration
	PoolSilentAfter        time.Duration // 0: half of NodeMonitorGracePeriod
	WhenSilent             string

	Certificates string // off, approve or sign; empty: off

	Gate       string
	GateCAFile string
	GateWays   int

	REST   *rest.Config     // instead of Kubeconfig, for tests; nil: as Kubeconfig says
	Clock  clock.WithTicker // for tests; nil: the real one
	Logger *slog.Logger     // nil: slog.Default()
}

// bind declares the flags of weir-manager.
func (c *Config) bind(f *cli.Flags) {
	f.StringVar(&c.Kubeconfig, "kubeconfig", "",
		"kubeconfig file of the cluster; none: the service account of the pod that this runs in")
	f.BoolVar(&c.LeaderElect, "leader-elect", true,
		"of several replicas one acts, the others listen; they agree by the Lease "+electionName+" in "+
			contract.ManagerNamespace)
	f.DurationVar(&c.LeaderElectLeaseDuration, "leader-elect-lease-duration", 15*time.Second,
		"how long others wait for a leader that does not renew its Lease")
	f.DurationVar(&c.LeaderElectRenewDeadline, "leader-elect-renew-deadline", 10*time.Second,
		"how long a leader tries to renew before it ends its process")
	f.DurationVar(&c.LeaderElectRetryPeriod, "leader-elect-retry-period", 2*time.Second, "time between two tries")
	f.StringVar(&c.MetricsBindAddress, "metrics-bind-address", "127.0.0.1:8080", "host:port of /metrics; 0: none")
	f.StringVar(&c.HealthProbeBindAddress, "health-probe-bind-address", "127.0.0.1:8081",
		"host:port of /healthz and /readyz; 0: none")
	f.DurationVar(&c.NodeMonitorGracePeriod, "node-monitor-grace-period", 50*time.Second,
		"must be that of kube-controller-manager: 50s by default, 40s before Kubernetes 1.32")
	f.DurationVar(&c.PoolSilentAfter, "pool-silent-after", 0,
		"a pool is silent when none of its nodes was heard for so long, more than twice the time between two heartbeats; "+
			"0: half of --node-monitor-grace-period")
	f.StringVar(&c.WhenSilent, "when-silent", "keep",
		"what to do with the pods of a silent pool: keep, or evict:<duration>, evict when it has been silent for so long; "+
			"whenSilent of its Pool says it for a single one")
	f.StringVar(&c.Certificates, "certificates", signCertificates,
		"what to do with requests of nodes for certificates of Weir: sign (approve, and sign those of pools), approve "+
			"(another signer signs), or off")
	f.StringVar(&c.Gate, "gate", "",
		"https://host:port at which pools reach weir-gate; none: there is no gate")
	f.StringVar(&c.GateCAFile, "gate-ca-file", "",
		"PEM file of the authorities of its certificate, which each pool is told; read again when it changes; required with "+
			"--gate")
	f.IntVar(&c.GateWays, "gate-ways", 0,
		"replicas of weir-gate to each of which the hub that leads a pool keeps a connection, by which the cloud reaches "+
			"into the pool (weir-gate --way-in); 0: none")
}

// settings is a Config that was checked.
type settings struct {
	Config
	rest    *rest.Config
	verdict verdict.Config
	usual   verdict.Policy
	gate    gates.Config
}

// Validate reports an invalid value, as a *cli.UsageError. It looks at no file.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

func (c Config) check() (*settings, error) {
	s := &settings{Config: c, verdict: verdict.Config{Grace: c.NodeMonitorGracePeriod, Silent: c.PoolSilentAfter}}
	s.Clock, s.Logger = cmp.Or[clock.WithTicker](s.Clock, clock.RealClock{}), cmp.Or(s.Logger, slog.Default())
	switch {
	case c.NodeMonitorGracePeriod < time.Second:
		return nil, cli.Usage("--node-monitor-grace-period", c.NodeMonitorGracePeriod,
			"1s or more, the same as kube-controller-manager's")
	case c.PoolSilentAfter < 0 || c.PoolSilentAfter >= c.NodeMonitorGracePeriod:
		return nil, cli.Usage("--pool-silent-after", c.PoolSilentAfter, "less than --node-monitor-grace-period, or 0")
	case c.LeaderElect && c.LeaderElectLeaseDuration <= c.LeaderElectRenewDeadline:
		return nil,
			cli.Usage("--leader-elect-lease-duration", c.LeaderElectLeaseDuration, "more than --leader-elect-renew-deadline")
	case c.LeaderElect && (c.LeaderElectRetryPeriod <= 0 || c.LeaderElectRenewDeadline <= 2*c.LeaderElectRetryPeriod):
		return nil, cli.Usage("--leader-elect-renew-deadline", c.LeaderElectRenewDeadline,
			"more than twice --leader-elect-retry-period")
	}
	if c.Certificates != "" && !slices.Contains(certificateModes, c.Certificates) {
		return nil, cli.Usage("--certificates", c.Certificates, strings.Join(certificateModes, ", "))
	}
	s.gate = gates.Config{Server: c.Gate, CAFile: c.GateCAFile, Ways: c.GateWays, Clock: s.Clock, Logger: s.Logger}
	if err := s.gate.Validate(); err != nil {
		return nil, err
	}
	var err error
	if s.usual, err = parsePolicy(c.WhenSilent); err != nil {
		return nil, cli.Usage("--when-silent", c.WhenSilent, allowedPolicies)
	}
	return s, nil
}

// connect finds the cluster.
func (s *settings) connect() (err error) {
	if s.REST != nil {
		s.rest = s.REST
		return nil
	}
	if s.Kubeconfig == "" {
		if s.rest, err = rest.InClusterConfig(); err != nil {
			return cli.Usage("--kubeconfig", "",
				"the path of a kubeconfig file, unless this runs in a pod with a service account: "+err.Error())
		}
	} else if s.rest, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig); err != nil {
		return cli.Usage("--kubeconfig", s.Kubeconfig, strings.Join(strings.Fields(err.Error()), " "))
	}
	s.rest.QPS, s.rest.Burst = requestsPerSecond, requestsAtOnce
	s.rest.UserAgent = "weir-manager"
	return nil
}

const allowedPolicies = "keep, or evict:<duration>, for example evict:1h"

// parsePolicy reads "keep" or "evict:<duration>".
func parsePolicy(s string) (verdict.Policy, error) {
	kind, after, timed := strings.Cut(strings.TrimSpace(s), ":")
	switch {
	case kind == "keep" && !timed:
		return verdict.Policy{}, nil
	case kind == "evict" && timed:
		if d, err := time.ParseDuration(after); err == nil && d >= 0 {
			return verdict.Policy{Evict: true, After: d}, nil
		}
	}
	return verdict.Policy{}, fmt.Errorf("policy %q: want %s", s, allowedPolicies)
}

// certifies reports whether requests for certificates are looked at.
func (s *settings) certifies() bool { return s.Certificates != "" && s.Certificates != noCertificates }
