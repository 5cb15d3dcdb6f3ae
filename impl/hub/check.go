package hub

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/nodelocal"
	"github.com/weir-edge/weir/impl/pki"
)

// Validate reports an invalid value, as a *cli.UsageError.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

// check validates each part, then what parts say of each other.
func (c Config) check() (*settings, error) {
	s := &settings{Config: c}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	if s.Net == nil {
		s.Net = door.System{}
	}
	for _, check := range []func() error{
		s.checkNames, s.Cloud.validate, s.Doors.validate, s.Callers.validate, s.checkOwn, s.Relays.validate,
		s.checkData, s.Storage.validate, s.checkFilters, s.Probes.validate, s.Pool.validate, s.checkPool, s.checkBeside,
		s.Images.Validate, s.resolve,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *settings) checkNames() error {
	switch {
	case s.NodeName == "" || strings.ContainsAny(s.NodeName, "/_ "):
		return cli.Usage("--node-name", s.NodeName, "the name of this node in the cluster")
	case s.NodePoolName == "" || strings.ContainsAny(s.NodePoolName, "/ "):
		return cli.Usage("--nodepool-name", s.NodePoolName, "the name of this node's pool")
	}
	return nil
}

func (s *settings) checkData() error {
	if s.DataDir == "" {
		return cli.Usage("--data-dir", "", "a directory on a disk that survives restarts")
	}
	return nil
}

func (s *settings) checkFilters() error {
	if err := s.filterConfig().Validate(); err != nil {
		return cli.Usage("--filters, --master-service-address", s.Filters, err.Error())
	}
	return nil
}

func (s *settings) checkOwn() error {
	if s.EtcDir == "" {
		return cli.Usage("--etc-dir", "", "a directory on a disk that survives restarts")
	}
	if s.serves = s.given(servingPair); s.serves {
		if len(s.TLSHosts) > 0 {
			return cli.Usage("--tls-hosts", s.TLSHosts, "none with "+inEtc(servingPair)+", which has its own")
		}
		if s.PodsAddress != "" {
			return cli.Usage("--pods-address", s.PodsAddress,
				"none with "+inEtc(servingPair)+": pods are shown this node's own authority only")
		}
		return nil
	}
	pods := nodelocal.CheckPods(s.PodsAddress, s.BindAddress, s.PodsWait)
	if err := cmp.Or(nodelocal.CheckHosts(s.TLSHosts), pods); err != nil {
		return err
	}
	if len(validation.IsDNS1123Subdomain(s.NodeName)) > 0 {
		return cli.Usage("--node-name", s.NodeName, "the name of a Node: small letters, digits, - and .")
	}
	return nil
}

// checkPool looks at what a hub in a pool needs beside it.
func (s *settings) checkPool() error {
	if !s.EnableCoordinator {
		return nil
	}
	if s.PoolPort != 0 && slices.Contains([]int{s.SecurePort, s.HealthPort, s.ProxyPort}, s.PoolPort) {
		return cli.Usage("--pool-port", s.PoolPort, "a TCP port that no other flag names, 0 to 65535")
	}
	if err := s.role("").Validate(); err != nil {
		return cli.Usage("--leader-elect-lease-duration, --leader-elect-renew-deadline, --leader-elect-retry-period, "+
			"--failover-grace-period",
			fmt.Sprint(s.LeaderElectLeaseDuration, ", ", s.LeaderElectRenewDeadline, ", ", s.LeaderElectRetryPeriod, ", ",
				s.FailoverGracePeriod),
			strings.TrimPrefix(err.Error(), "role: "))
	}
	return nil
}

// checkBeside looks at what a hub beside a coordinator needs.
func (s *settings) checkBeside() error {
	switch {
	case s.EnrolCoordinatorDir == "" && len(s.EnrolCoordinatorHosts) > 0:
		return cli.Usage("--enrol-coordinator-host", strings.Join(s.EnrolCoordinatorHosts, " "),
			"none without --enrol-coordinator-dir")
	case s.EnrolCoordinatorDir == "" && s.CoordinatorReplica != "":
		return cli.Usage("--coordinator-replica", s.CoordinatorReplica, "none without --enrol-coordinator-dir")
	case s.EnrolCoordinatorDir == "":
		return nil
	case !s.EnableCoordinator:
		return cli.Usage("--enrol-coordinator-dir", s.EnrolCoordinatorDir,
			"none without --enable-coordinator: the node is in no pool")
	}
	if len(s.EnrolCoordinatorHosts) == 0 && len(s.CoordinatorServers) == 1 && !s.managesReplica() {
		if u, err := url.Parse(s.CoordinatorServers[0]); err == nil {
			s.EnrolCoordinatorHosts = []string{u.Hostname()}
		}
	}
	for _, k := range s.kindsOfCoordinator() {
		if _, err := pki.Must(k).Template(s.ofCoordinator(), time.Time{}, 0); err != nil {
			return cli.Usage("--enrol-coordinator-host, --coordinator-replica",
				strings.Join(append(s.EnrolCoordinatorHosts, s.CoordinatorReplica), " "), err.Error())
		}
	}
	return nil
}

// resolve keeps what the valid values say.
func (s *settings) resolve() (err error) {
	if s.servers, err = s.Cloud.servers(); err != nil {
		return err
	}
	if s.resources, s.always, err = s.Relays.shared(); err != nil {
		return err
	}
	for i, r := range s.resources {
		if why := r.Exposed(); why != "" {
			s.Logger.Warn(why, "flag", "--pool-scope-resources", "resource", s.PoolScopeResources[i])
		}
	}
	if !s.EnableCoordinator {
		return nil
	}
	if s.leaders, err = s.Pool.leaders(); err != nil {
		return err
	}
	s.coordinators, err = s.Pool.servers()
	return err
}

// kindsOfCoordinator are the certificates of the coordinator on this node.
func (s *settings) kindsOfCoordinator() []pki.Kind {
	switch {
	case s.EnrolCoordinatorDir == "":
		return nil
	case s.CoordinatorReplica == "":
		return []pki.Kind{pki.Coordinator}
	}
	return []pki.Kind{pki.Coordinator, pki.Replica}
}

func (s *settings) ofCoordinator() pki.Subject {
	name := s.CoordinatorReplica
	if s.managesReplica() {
		name = contract.ReplicaName(s.NodeName)
	}
	return pki.Subject{Pool: s.NodePoolName, Name: name, Hosts: s.EnrolCoordinatorHosts}
}
