package hub

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/bounds"
	"github.com/weir-edge/weir/impl/hub/leaderhub"
	"github.com/weir-edge/weir/impl/hub/nodeauthority"
	"github.com/weir-edge/weir/impl/hub/pods"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/relay"
)

// Validate reports an invalid value, as a *cli.UsageError.
func (c Config) Validate() error {
	_, err := c.check()
	return err
}

func (c Config) check() (*settings, error) {
	s := &settings{Config: c, servers: map[uplink.Class][]*url.URL{}}
	for _, check := range []func() error{
		s.checkNames, s.checkCloud, s.checkListeners, s.checkResources, s.checkStore, s.checkFilters, s.checkTimes,
		s.checkCoordinator, s.checkOfCoordinator,
	} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	if s.Net == nil {
		s.Net = systemNet{}
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

func (s *settings) checkCloud() error {
	if len(s.CloudServers) == 0 && s.CloudClientKubeconfig == "" {
		return cli.Usage("--cloud-server", "",
			"the URL of a kube-apiserver, e.g. https://cloud.example.com:6443; it may be given more than once; or "+
				"--cloud-client-kubeconfig, which names one")
	}
	var all []*url.URL
	for _, server := range s.CloudServers {
		u, err := serverURL("--cloud-server", server)
		if err != nil {
			return err
		}
		all = append(all, u)
	}
	for _, cs := range s.ClassServers {
		name, server, ok := strings.Cut(cs, "=")
		if !ok || !slices.Contains(uplink.Classes, uplink.Class(name)) {
			return cli.Usage("--class-server", cs, fmt.Sprintf("class=URL, where class is one of %v", uplink.Classes))
		}
		u, err := serverURL("--class-server", server)
		if err != nil {
			return err
		}
		s.servers[uplink.Class(name)] = append(s.servers[uplink.Class(name)], u)
	}
	for _, c := range uplink.Classes {
		switch n := len(s.servers[c]); {
		case n == 0:
			s.servers[c] = all
		case n != len(all):
			return cli.Usage("--class-server", fmt.Sprintf("%d addresses for %s", n, c),
				fmt.Sprintf("one for each --cloud-server, in their order: %d", len(all)))
		}
	}
	if s.CloudClientKubeconfig != "" {
		if (s.CloudClientCertFile == "") != (s.CloudClientKeyFile == "") {
			return needFiles("--cloud-client-cert-file", s.CloudClientCertFile, "--cloud-client-key-file", s.CloudClientKeyFile)
		}
		return nil
	}
	return needFiles(
		"--cloud-ca-file", s.CloudCAFile,
		"--cloud-client-cert-file", s.CloudClientCertFile,
		"--cloud-client-key-file", s.CloudClientKeyFile)
}

func (s *settings) checkListeners() error {
	for flag, address := range map[string]string{
		"--bind-address": s.BindAddress, "--health-bind-address": s.HealthBindAddress,
	} {
		if net.ParseIP(address) == nil {
			return cli.Usage(flag, address, "an IP address of this machine")
		}
	}
	for _, p := range []struct {
		flag string
		port int
	}{{"--secure-port", s.SecurePort}, {"--health-port", s.HealthPort}, {"--proxy-port", s.ProxyPort}} {
		if p.port < 0 || p.port > 65535 {
			return cli.Usage(p.flag, p.port, "a TCP port, 0 to 65535")
		}
	}
	if s.SecurePort != 0 &&
		(s.SecurePort == s.HealthPort && s.BindAddress == s.HealthBindAddress || s.SecurePort == s.ProxyPort) {
		return cli.Usage("--secure-port", s.SecurePort, "a port that no other flag names")
	}
	if s.CallerRate = cmp.Or(s.CallerRate, bounds.DefaultCallerRate); s.CallerRate < 0 ||
		s.CallerRate > bounds.MaxCallerLimit {
		return cli.Usage("--caller-rate", s.CallerRate,
			fmt.Sprintf("1 to %d requests; 0 is %d", bounds.MaxCallerLimit, bounds.DefaultCallerRate))
	}
	if s.CallersMaxBytes = cmp.Or(s.CallersMaxBytes, bounds.DefaultCallersBytes); s.CallersMaxBytes <
		bounds.LeastCallersBytes {
		return cli.Usage("--callers-max-bytes", s.CallersMaxBytes,
			fmt.Sprintf("at least %d bytes; 0 is %d", bounds.LeastCallersBytes, bounds.DefaultCallersBytes))
	}
	return s.checkOwn()
}

func (s *settings) checkResources() error {
	if len(s.PoolScopeResources) == 0 {
		s.PoolScopeResources = defaultResources()
	}
	for _, name := range s.PoolScopeResources {
		r, err := relay.ParseResource(name)
		if err != nil {
			return cli.Usage("--pool-scope-resources", name, err.Error())
		}
		if slices.ContainsFunc(s.resources, func(o relay.Resource) bool { return o.String() == r.String() }) {
			return cli.Usage("--pool-scope-resources", name, "each resource once")
		}
		if err := (relay.Config{Resource: r, RingBytes: s.RingBytes, MaxBytes: s.RelayMaxBytes, RingAge: s.RingAge}).
			Validate(); err != nil {
			return cli.Usage("--ring-bytes, --relay-max-bytes", fmt.Sprint(s.RingBytes, ", ", s.RelayMaxBytes), err.Error())
		}
		if why := r.Exposed(); why != "" {
			s.Logger.Warn(why, "flag", "--pool-scope-resources", "resource", name)
		}
		s.resources = append(s.resources, r)
	}
	if t := s.UpstreamWatchTimeout; t < 3*time.Second || t%time.Second != 0 {
		return fmt.Errorf("a watch at the cloud lasts %v, want whole seconds, 3s or more: the cloud tells how fresh it is "+
			"2s before its end", t)
	}
	if s.MaxStaleRead < 0 || s.MaxStaleRead > 0 && s.MaxStaleRead < 2*s.UpstreamWatchTimeout {
		return fmt.Errorf("a relay answers up to an age of %v, want %v or more, twice a watch at the cloud, since a quiet "+
			"resource gives a sign that often; or 0 for no limit", s.MaxStaleRead, 2*s.UpstreamWatchTimeout)
	}
	return nil
}

func (s *settings) checkStore() error {
	if s.DataDir == "" {
		return cli.Usage("--data-dir", "", "a directory on a disk that survives restarts")
	}
	if s.StorePlaintextSecrets && s.StoreKeyFile != "" {
		return cli.Usage("--store-plaintext-secrets", true, "false, or no --store-key-file")
	}
	if err := s.storeConfig().Validate(); err != nil {
		return cli.Usage("--store-max-bytes", s.StoreMaxBytes, strings.TrimPrefix(err.Error(), "store: "))
	}
	return nil
}

func (s *settings) checkTimes() error {
	switch {
	case s.HeartbeatInterval < 100*time.Millisecond:
		return cli.Usage("--heartbeat-interval", s.HeartbeatInterval, "100ms or more")
	case s.HeartbeatTimeout < 10*time.Millisecond || s.HeartbeatTimeout > s.HeartbeatInterval:
		return cli.Usage("--heartbeat-timeout", s.HeartbeatTimeout, "10ms or more, at most --heartbeat-interval")
	case s.HeartbeatFailedRetry < 1:
		return cli.Usage("--heartbeat-failed-retry", s.HeartbeatFailedRetry, "1 or more")
	case s.OfflineTokenAllowance < 0:
		return cli.Usage("--offline-token-allowance", s.OfflineTokenAllowance, "0 or more")
	case s.OfflineAccess < 0:
		return cli.Usage("--offline-access", s.OfflineAccess, "more than 0")
	case s.HeartbeatHealthyThreshold < 1:
		return cli.Usage("--heartbeat-healthy-threshold", s.HeartbeatHealthyThreshold, "1 or more")
	}
	return nil
}

func (s *settings) checkCoordinator() error {
	if !s.EnableCoordinator {
		return nil
	}
	if len(s.LeaderHubs) > 0 && len(s.CoordinatorServers) > 0 { // with neither the pool is told by leader-hub-<pool> alone
		return cli.Usage("--leader-hub", strings.Join(s.LeaderHubs, " "),
			"none with --coordinator-server: a pool has the one or the other")
	}
	var err error
	if s.leaders, err = leaderhub.ParseAll(s.LeaderHubs); err != nil {
		return cli.Usage("--leader-hub", strings.Join(s.LeaderHubs, " "), err.Error())
	}
	for _, server := range s.CoordinatorServers {
		u, err := serverURL("--coordinator-server", server)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(s.coordinators, func(o *url.URL) bool { return o.Host == u.Host }) {
			return cli.Usage("--coordinator-server", server, "each replica once")
		}
		s.coordinators = append(s.coordinators, u)
	}
	if err := s.role("").Validate(); err != nil {
		return cli.Usage("--leader-elect-lease-duration, --leader-elect-renew-deadline, --leader-elect-retry-period, "+
			"--failover-grace-period, --failover-spread",
			fmt.Sprint(s.LeaderElectLeaseDuration, ", ", s.LeaderElectRenewDeadline, ", ", s.LeaderElectRetryPeriod, ", ",
				s.FailoverGracePeriod, ", ", s.FailoverSpread),
			strings.TrimPrefix(err.Error(), "role: "))
	}
	return s.checkPoolDoor()
}

func (s *settings) checkPoolDoor() error {
	if s.PoolBindAddress = cmp.Or(s.PoolBindAddress, "0.0.0.0"); net.ParseIP(s.PoolBindAddress) == nil {
		return cli.Usage("--pool-bind-address", s.PoolBindAddress, "an IP address of this machine")
	}
	if s.PoolPort < 0 || s.PoolPort > 65535 ||
		s.PoolPort != 0 && slices.Contains([]int{s.SecurePort, s.HealthPort, s.ProxyPort}, s.PoolPort) {
		return cli.Usage("--pool-port", s.PoolPort, "a TCP port that no other flag names, 0 to 65535")
	}
	if s.PoolAddress != "" {
		if _, _, err := contract.ParsePoolAddress(s.PoolAddress); err != nil {
			return cli.Usage("--pool-address", s.PoolAddress,
				fmt.Sprintf("IP address and port, as in 10.0.0.7:%d, or %s", contract.HubPoolPort, contract.PoolAddressReverse))
		}
	}
	return nil
}

func defaultResources() []string {
	return []string{"endpoints.v1.", contract.EndpointSlices + ".v1." + contract.DiscoveryGroup}
}

func serverURL(flag, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.User != nil {
		return nil, cli.Usage(flag, s, "a URL of the form https://host:port")
	}
	u.Path = ""
	return u, nil
}

func needFiles(pairs ...string) error {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			return cli.Usage(pairs[i], "", "the path of a PEM file; it is required")
		}
	}
	return nil
}

func (s *settings) checkFilters() error {
	if err := s.filterConfig().Validate(); err != nil {
		return cli.Usage("--filters, --master-service-address", s.Filters, err.Error())
	}
	return nil
}

func (s *settings) checkOfCoordinator() error {
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

func (s *settings) checkOwn() error {
	if !s.ownsAuthority() {
		if len(s.TLSHosts) > 0 {
			return cli.Usage("--tls-hosts", s.TLSHosts, "none with --tls-cert-file, which has its own")
		}
		if s.PodsAddress != "" {
			return cli.Usage("--pods-address", s.PodsAddress,
				"none with --tls-cert-file: pods are shown this node's own authority only")
		}
		return needFiles("--tls-cert-file", s.TLSCertFile, "--tls-private-key-file", s.TLSPrivateKeyFile)
	}
	if err := cmp.Or(nodeauthority.CheckHosts(s.TLSHosts), pods.Check(s.PodsAddress, s.BindAddress, s.PodsWait)); err !=
		nil {
		return err
	}
	if namespace, name, ok := strings.Cut(s.KubeProxyConfigMap, "/"); s.KubeProxyConfigMap != "" &&
		(!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		return cli.Usage("--kube-proxy-configmap", s.KubeProxyConfigMap, "namespace/name of a ConfigMap, or nothing")
	}
	if len(validation.IsDNS1123Subdomain(s.NodeName)) > 0 {
		return cli.Usage("--node-name", s.NodeName, "the name of a Node: small letters, digits, - and .")
	}
	return nil
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
