package hub

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/directory"
	"github.com/weir-edge/weir/impl/hub/pooldoor"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/scope"
)

// Each validate reports an invalid value, as a *cli.UsageError where a flag sets it. Some fill in a default.

func (c *Cloud) validate() error {
	if len(c.CloudServers) == 0 && c.CloudClientKubeconfig == "" {
		return cli.Usage("--cloud-server", "",
			"the URL of a kube-apiserver, e.g. https://cloud.example.com:6443; it may be given more than once; or "+
				"--cloud-client-kubeconfig, which names one")
	}
	if _, err := c.servers(); err != nil {
		return err
	}
	if c.CloudClientKubeconfig == "" && c.CloudClientCertFile == "" {
		return cli.Usage("--cloud-client-cert-file", "", "the path of a PEM file; it is required")
	}
	if p := c.NodeStatusPeriod; p < 0 || p > 24*time.Hour {
		return cli.Usage("--node-status-period", p, "0 to 24h")
	}
	return nil
}

// servers are the addresses of the cloud for each class of traffic.
func (c *Cloud) servers() (map[uplink.Class][]*url.URL, error) {
	var all []*url.URL
	of := map[uplink.Class][]*url.URL{}
	for _, server := range c.CloudServers {
		class, address, ofClass := strings.Cut(server, "=")
		if ofClass && !slices.Contains(uplink.Classes, uplink.Class(class)) {
			return nil, cli.Usage("--cloud-server", server, fmt.Sprintf("class=URL, where class is one of %v", uplink.Classes))
		}
		if !ofClass {
			address = server
		}
		u, err := serverURL("--cloud-server", address)
		if err != nil {
			return nil, err
		}
		if ofClass {
			of[uplink.Class(class)] = append(of[uplink.Class(class)], u)
		} else {
			all = append(all, u)
		}
	}
	for _, class := range uplink.Classes {
		switch n := len(of[class]); {
		case n == 0:
			of[class] = all
		case n != len(all):
			return nil, cli.Usage("--cloud-server", fmt.Sprintf("%d addresses for %s", n, class),
				fmt.Sprintf("one for each without a class, in their order: %d", len(all)))
		}
	}
	return of, nil
}

func (d *Doors) validate() error {
	for flag, address := range map[string]string{
		"--bind-address": d.BindAddress, "--health-port": d.HealthBindAddress,
	} {
		if net.ParseIP(address) == nil {
			return cli.Usage(flag, address, "an IP address of this machine")
		}
	}
	for _, p := range []struct {
		flag string
		port int
	}{{"--secure-port", d.SecurePort}, {"--health-port", d.HealthPort}, {"--proxy-port", d.ProxyPort}} {
		if p.port < 0 || p.port > 65535 {
			return cli.Usage(p.flag, p.port, "a TCP port, 0 to 65535")
		}
	}
	if d.SecurePort != 0 &&
		(d.SecurePort == d.HealthPort && d.BindAddress == d.HealthBindAddress || d.SecurePort == d.ProxyPort) {
		return cli.Usage("--secure-port", d.SecurePort, "a port that no other flag names")
	}
	return nil
}

func (c *Callers) validate() error {
	if c.CallerRate = cmp.Or(c.CallerRate, limit.DefaultCallerRate); c.CallerRate < 0 ||
		c.CallerRate > limit.MaxCallerLimit {
		return cli.Usage("--caller-rate", c.CallerRate,
			fmt.Sprintf("1 to %d requests; 0 is %d", limit.MaxCallerLimit, limit.DefaultCallerRate))
	}
	if c.CallersMaxBytes = cmp.Or(c.CallersMaxBytes, limit.DefaultCallersBytes); c.CallersMaxBytes <
		limit.LeastCallersBytes {
		return cli.Usage("--callers-max-bytes", c.CallersMaxBytes,
			fmt.Sprintf("at least %d bytes; 0 is %d", limit.LeastCallersBytes, limit.DefaultCallersBytes))
	}
	switch {
	case c.OfflineTokenAllowance < 0:
		return cli.Usage("--offline-token-allowance", c.OfflineTokenAllowance, "0 or more")
	case c.OfflineAccess < 0:
		return cli.Usage("--offline-access", c.OfflineAccess, "more than 0")
	}
	return nil
}

func (r *Relays) validate() error {
	if len(r.PoolScopeResources) == 0 {
		r.PoolScopeResources = defaultResources()
	}
	if _, _, err := r.shared(); err != nil {
		return err
	}
	if t := r.UpstreamWatchTimeout; t < 3*time.Second || t%time.Second != 0 {
		return fmt.Errorf("a watch at the cloud lasts %v, want whole seconds, 3s or more: the cloud tells how fresh it is "+
			"2s before its end", t)
	}
	if r.MaxStaleRead < 0 || r.MaxStaleRead > 0 && r.MaxStaleRead < 2*r.UpstreamWatchTimeout {
		return fmt.Errorf("a relay answers up to an age of %v, want %v or more, twice a watch at the cloud, since a quiet "+
			"resource gives a sign that often; or 0 for no limit", r.MaxStaleRead, 2*r.UpstreamWatchTimeout)
	}
	return nil
}

// shared are the resources that the pool keeps one copy of, and the names of those that it does though nobody reads
// them.
func (r *Relays) shared() (all []relay.Resource, always []string, err error) {
	for _, name := range r.PoolScopeResources {
		one, unread, err := scope.Parse(name)
		if err != nil {
			return nil, nil, cli.Usage("--pool-scope-resources", name, err.Error())
		}
		if slices.ContainsFunc(all, func(o relay.Resource) bool { return o.String() == one.String() }) {
			return nil, nil, cli.Usage("--pool-scope-resources", name, "each resource once")
		}
		if err := (relay.Config{Resource: one, RingAge: r.RingAge}).Validate(); err != nil {
			return nil, nil, cli.Usage("--pool-scope-resources", name, err.Error())
		}
		if all = append(all, one); unread {
			always = append(always, one.String())
		}
	}
	return all, always, nil
}

func (s *Storage) validate() error {
	if err := s.config("/").Validate(); err != nil {
		return cli.Usage("--store-max-bytes", s.StoreMaxBytes, strings.TrimPrefix(err.Error(), "store: "))
	}
	return nil
}

func (p *Probes) validate() error {
	switch {
	case p.HeartbeatInterval < 100*time.Millisecond:
		return cli.Usage("--heartbeat-interval", p.HeartbeatInterval, "100ms or more")
	case p.HeartbeatTimeout < 10*time.Millisecond || p.HeartbeatTimeout > p.HeartbeatInterval:
		return cli.Usage("--heartbeat-timeout", p.HeartbeatTimeout, "10ms or more, at most --heartbeat-interval")
	case p.HeartbeatFailedRetry < 1:
		return cli.Usage("--heartbeat-failed-retry", p.HeartbeatFailedRetry, "1 or more")
	case p.HeartbeatHealthyThreshold < 1:
		return cli.Usage("--heartbeat-healthy-threshold", p.HeartbeatHealthyThreshold, "1 or more")
	}
	return nil
}

func (p *Pool) validate() error {
	if !p.EnableCoordinator {
		return nil
	}
	if len(p.LeaderHubs) > 0 && len(p.CoordinatorServers) > 0 { // with neither the pool is told by leader-hub-<pool> alone
		return cli.Usage("--leader-hub", strings.Join(p.LeaderHubs, " "),
			"none with --coordinator-server: a pool has the one or the other")
	}
	if _, err := p.leaders(); err != nil {
		return err
	}
	if _, err := p.servers(); err != nil {
		return err
	}
	if p.PoolBindAddress = cmp.Or(p.PoolBindAddress, "0.0.0.0"); net.ParseIP(p.PoolBindAddress) == nil {
		return cli.Usage("--pool-port", p.PoolBindAddress, "an IP address of this machine")
	}
	if p.PoolPort < 0 || p.PoolPort > 65535 {
		return cli.Usage("--pool-port", p.PoolPort, "a TCP port, 0 to 65535")
	}
	if p.PoolAddress != "" {
		if _, _, err := contract.ParsePoolAddress(p.PoolAddress); err != nil {
			return cli.Usage("--pool-address", p.PoolAddress,
				fmt.Sprintf("IP address and port, as in 10.0.0.7:%d, or %s", contract.HubPoolPort, contract.PoolAddressReverse))
		}
	}
	return nil
}

// leaders are the hubs that read the cloud for a pool without a coordinator.
func (p *Pool) leaders() ([]directory.Leader, error) {
	all, err := pooldoor.ParseAll(p.LeaderHubs)
	if err != nil {
		return nil, cli.Usage("--leader-hub", strings.Join(p.LeaderHubs, " "), err.Error())
	}
	return all, nil
}

// servers are the replicas of the coordinator.
func (p *Pool) servers() (all []*url.URL, err error) {
	for _, server := range p.CoordinatorServers {
		u, err := serverURL("--coordinator-server", server)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o *url.URL) bool { return o.Host == u.Host }) {
			return nil, cli.Usage("--coordinator-server", server, "each replica once")
		}
		all = append(all, u)
	}
	return all, nil
}

func defaultResources() []string { return directory.DefaultScope() }

func serverURL(flag, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" ||
		u.User != nil {
		return nil, cli.Usage(flag, s, "a URL of the form https://host:port")
	}
	u.Path = ""
	return u, nil
}
