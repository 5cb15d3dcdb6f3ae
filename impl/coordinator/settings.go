package coordinator

import (
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator/store"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
	"github.com/weir-edge/weir/impl/trust"
)

// settings is a Config that was checked.
type settings struct {
	Config
	resources []relay.Resource
	always    []string        // those of them that are relayed though no hub reads them
	members   []store.Replica // none: this is the only replica
	// Below CertificatesDir: the certificate of this server with its key, the one by which other replicas know it ("": it
	// is the only one), and the pool's authorities, until a hub or a replica has brought others that they vouch for.
	servingFile, peerFile, caFile string
	peerAddress                   string // where this replica meets the others, as it listens
}

// Validate reports an invalid value, as a *cli.UsageError. It does not look at files.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

func (c Config) check() (*settings, error) {
	s := &settings{Config: c}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	if s.Clock == nil {
		s.Clock = clock.RealClock{}
	}
	switch {
	case s.NodePoolName == "" || strings.ContainsAny(s.NodePoolName, "/ "):
		return nil, cli.Usage("--nodepool-name", s.NodePoolName, "the name of the pool that this coordinator serves")
	case net.ParseIP(s.BindAddress) == nil:
		return nil, cli.Usage("--bind-address", s.BindAddress, "an IP address of this machine")
	case s.SecurePort < 0 || s.SecurePort > 65535:
		return nil, cli.Usage("--secure-port", s.SecurePort, "a TCP port, 0 to 65535")
	case s.DataDir == "":
		return nil, cli.Usage("--data-dir", "", "a directory on a disk that survives restarts; it is required")
	case s.CertificatesDir == "":
		return nil, cli.Usage("--certificates-dir", "", "the --enrol-coordinator-dir of this node's hub; it is required")
	case s.Placement != "" && len(validation.IsDNS1123Label(string(s.Placement))) > 0:
		return nil, cli.Usage("--placement", s.Placement, "at most 63 lower-case letters, digits and '-', or nothing")
	case s.FreshWithin < time.Second:
		return nil, cli.Usage("--fresh-within", s.FreshWithin, "1s or more")
	}
	if err := s.absolute(); err != nil {
		return nil, err
	}
	s.servingFile = credential.KeptFile(s.CertificatesDir, pki.Coordinator)
	s.caFile = filepath.Join(s.CertificatesDir, trust.CAFile)
	if len(s.InitialCluster) > 0 {
		s.peerFile = credential.KeptFile(s.CertificatesDir, pki.Replica)
	}
	var err error
	if s.members, err = s.replicas(); err != nil {
		return nil, err
	}
	return s, s.checkResources()
}

func (s *settings) checkResources() error {
	names := s.PoolScopeResources
	if len(names) == 0 {
		names = defaultResources()
	}
	for _, name := range names {
		r, always, err := scope.Parse(name)
		if err != nil {
			return cli.Usage("--pool-scope-resources", name, err.Error())
		}
		if r.Group == coordinationv1.GroupName {
			return cli.Usage("--pool-scope-resources", name,
				"another group: "+coordinationv1.GroupName+" is the coordinator's own")
		}
		if slices.ContainsFunc(s.resources, func(o relay.Resource) bool {
			return o.Group == r.Group && o.Resource == r.Resource
		}) {
			return cli.Usage("--pool-scope-resources", name, "each resource once")
		}
		if err := (relay.Config{Resource: r, RingBytes: s.RingBytes, MaxBytes: s.RelayMaxBytes, RingAge: s.RingAge}).
			Validate(); err != nil {
			return cli.Usage("--ring-bytes, --relay-max-bytes", fmt.Sprint(s.RingBytes, ", ", s.RelayMaxBytes), err.Error())
		}
		if why := r.Exposed(); why != "" {
			s.Logger.Warn(why, "flag", "--pool-scope-resources", "resource", name)
		}
		if s.resources = append(s.resources, r); always {
			s.always = append(s.always, r.String())
		}
	}
	return nil
}

func defaultResources() []string { return directory.DefaultScope() }

// absolute makes paths mean the same wherever this process works: one of several replicas works in a directory of its
// own, see package store.
func (s *settings) absolute() error {
	for _, f := range []struct {
		flag string
		path *string
	}{
		{"--data-dir", &s.DataDir}, {"--certificates-dir", &s.CertificatesDir},
	} {
		path, err := filepath.Abs(*f.path)
		if err != nil {
			return cli.Usage(f.flag, *f.path, "an absolute path, as the directory of this process is not known: "+err.Error())
		}
		*f.path = path
	}
	return nil
}
