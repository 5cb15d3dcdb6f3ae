package gate

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
)

// Config is what a gate is made of. Each field is the flag of the same name; see bind for their meaning and defaults.
type Config struct {
	Kubeconfig string

	BindAddress       string
	SecurePort        int // 0: any free one
	TLSCertFile       string
	TLSPrivateKeyFile string

	PoolScopeResources []string
	Linger             time.Duration // after its last reader a resource is relayed so long; 0: always
	RingBytes          int64
	RingAge            time.Duration // 0: the relay's default; no flag
	FreshWithin        time.Duration
	WayIn              bool

	Pods                        bool
	KubeletClientCertificate    string
	KubeletClientKey            string
	KubeletCertificateAuthority string

	Clock  clock.WithTickerAndDelayedExecution // for tests; nil: the real one
	Logger *slog.Logger                        // nil: slog.Default()
}

// bind declares the flags of weir-gate.
func (c *Config) bind(f *cli.Flags) {
	c.Linger = scope.DefaultLinger
	f.StringVar(&c.Kubeconfig, "kubeconfig", "",
		"kubeconfig file of the cluster; none: the service account of the pod that this runs in")
	f.Listen(&c.BindAddress, &c.SecurePort, "secure-port", "0.0.0.0", contract.GatePort,
		"TLS port that pools read at; before it the IP address of this machine that it is on, and a colon; 0 takes any free "+
			"one")
	f.StringVar(&c.TLSCertFile, "tls-cert-file", "",
		"PEM file of the certificate that is shown there, read again when it changes; pools are told its authority by "+
			"weir-manager; required")
	f.StringVar(&c.TLSPrivateKeyFile, "tls-private-key-file", "", "PEM file of its key; required")
	f.StringArrayVar(&c.PoolScopeResources, "pool-scope-resources", directory.DefaultScope(),
		"resource.version.group that pools may read here, if kube-apiserver lets them (never Secrets); others they read at "+
			"kube-apiserver; repeatable; a custom resource needs its kind, as in widgets.v1.example.com=Widget; "+
			"+resource.version.group is relayed though nobody reads it")
	f.Int64Var(&c.RingBytes, "ring-bytes", 16<<20, "bytes of recent changes kept per resource, for pools that resume")
	f.DurationVar(&c.FreshWithin, "fresh-within", 30*time.Second,
		"a resource is served while kube-apiserver has shown a sign of life within this time")
	f.BoolVar(&c.WayIn, "way-in", false,
		"let hubs that lead keep a connection to this gate, and who may reach into their pools by CONNECT; hubs are told by "+
			"--gate-ways of weir-manager")
	f.BoolVar(&c.Pods, "pods", false,
		"serve logs, exec, attach and port-forward of pods of pools to callers that may, for kubectl weir logs; wants "+
			"--way-in")
	f.StringVar(&c.KubeletClientCertificate, "kubelet-client-certificate", "",
		"PEM file of the client certificate that kubelets are shown, read for each connection; required with --pods")
	f.StringVar(&c.KubeletClientKey, "kubelet-client-key", "", "PEM file of its key; required with --pods")
	f.StringVar(&c.KubeletCertificateAuthority, "kubelet-certificate-authority", "",
		"PEM file of the authorities of kubelets' own certificates; none: they are not verified, as by kube-apiserver")
}

// leastFresh is how rarely kube-apiserver may show a sign of life of a resource of which nothing changes.
const leastFresh = 20 * time.Second

// settings is a Config that was checked.
type settings struct {
	Config
	rest      *rest.Config
	resources []relay.Resource
	always    []string // those of them that are relayed though nobody reads them
}

// Validate reports an invalid value, as a *cli.UsageError. It looks at no file.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

func (c Config) check() (*settings, error) {
	s := &settings{Config: c}
	s.Clock = cmp.Or[clock.WithTickerAndDelayedExecution](s.Clock, clock.RealClock{})
	s.Logger = cmp.Or(s.Logger, slog.Default())
	switch {
	case net.ParseIP(s.BindAddress) == nil:
		return nil, cli.Usage("--secure-port", s.BindAddress, "a port, or an IP address of this machine before it")
	case s.SecurePort < 0 || s.SecurePort > 65535:
		return nil, cli.Usage("--secure-port", s.SecurePort, "a TCP port, 0 to 65535")
	case s.TLSCertFile == "":
		return nil, cli.Usage("--tls-cert-file", "", "a PEM file; it is required")
	case s.TLSPrivateKeyFile == "":
		return nil, cli.Usage("--tls-private-key-file", "", "a PEM file; it is required")
	case s.FreshWithin < leastFresh:
		return nil, cli.Usage("--fresh-within", s.FreshWithin, leastFresh.String()+" or more")
	case s.Pods && !s.WayIn:
		return nil, cli.Usage("--way-in", false, "true; it is required with --pods")
	case s.Pods && s.KubeletClientCertificate == "":
		return nil, cli.Usage("--kubelet-client-certificate", "", "a PEM file; it is required with --pods")
	case s.Pods && s.KubeletClientKey == "":
		return nil, cli.Usage("--kubelet-client-key", "", "a PEM file; it is required with --pods")
	case s.Linger < 0:
		return nil, cli.Usage("linger", s.Linger, "0 or more")
	}
	for _, name := range s.PoolScopeResources {
		r, always, err := scope.Parse(name)
		if err != nil {
			return nil, cli.Usage("--pool-scope-resources", name, err.Error())
		}
		if slices.ContainsFunc(s.resources, func(o relay.Resource) bool {
			return o.Group == r.Group && o.Resource == r.Resource
		}) {
			return nil, cli.Usage("--pool-scope-resources", name, "each resource once")
		}
		if err := (relay.Config{Resource: r, RingBytes: s.RingBytes, RingAge: s.RingAge}).Validate(); err != nil {
			return nil, cli.Usage("--ring-bytes", s.RingBytes, err.Error())
		}
		if s.resources = append(s.resources, r); always {
			s.always = append(s.always, r.String())
		}
	}
	return s, nil
}

// connect reads where the cluster is.
func (s *settings) connect() (err error) {
	if s.Kubeconfig == "" {
		if s.rest, err = rest.InClusterConfig(); err != nil {
			return cli.Usage("--kubeconfig", "", "a kubeconfig file, as this is no pod of a cluster: "+err.Error())
		}
	} else if s.rest, err = clientcmd.BuildConfigFromFlags("", s.Kubeconfig); err != nil {
		return cli.Usage("--kubeconfig", s.Kubeconfig, err.Error())
	}
	s.rest.UserAgent = fmt.Sprintf("weir-gate (%s)", contract.UserAgent)
	return nil
}
