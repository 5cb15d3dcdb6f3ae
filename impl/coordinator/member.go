package coordinator

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator/replicas"
)

// replicaCount is how many replicas a coordinator has that has more than one: any one may die, and no odd number above
// costs less.
const replicaCount = 3

const maxToken = 200

// replicas reads what makes this one of several; none: it is alone. It sets the defaults of that.
func (c *Config) replicas() (members []replicas.Member, err error) {
	if len(c.InitialCluster) == 0 {
		if c.ClusterState == ClusterExisting || c.ClusterToken != "" || c.Name != "" || len(c.ReplicaServers) > 0 ||
			c.PeerBindAddress != "" {
			return nil,
				cli.Usage("--initial-cluster", "",
					"name=https://host:port for each of three replicas, or no flag of replicas at all")
		}
		return nil, nil
	}
	if c.ClusterState != "" && c.ClusterState != ClusterNew && c.ClusterState != ClusterExisting {
		return nil, cli.Usage("--initial-cluster-state", c.ClusterState, ClusterNew+" or "+ClusterExisting)
	}
	if len(c.ClusterToken) > maxToken {
		return nil,
			cli.Usage("--initial-cluster-token", fmt.Sprintf("%.40s… of %d bytes", c.ClusterToken, len(c.ClusterToken)),
				fmt.Sprintf("at most %d bytes", maxToken))
	}
	peers, names, err := replicas.URLs("--initial-cluster", c.InitialCluster)
	if err != nil {
		return nil, err
	}
	servers, _, err := replicas.URLs("--replica-server", c.ReplicaServers)
	if err != nil {
		return nil, err
	}
	if len(peers) != replicaCount {
		return nil, cli.Usage("--initial-cluster", strings.Join(c.InitialCluster, " "),
			fmt.Sprintf("%d replicas, or none: with %d a majority is lost as easily", replicaCount, len(peers)))
	}
	for _, name := range names {
		if servers[name] == nil {
			return nil, cli.Usage("--replica-server", strings.Join(c.ReplicaServers, " "),
				"one for each of --initial-cluster: there is none for "+name)
		}
		members = append(members, replicas.Member{Name: name, Peer: peers[name], API: servers[name]})
	}
	for _, m := range members {
		for _, o := range members {
			if m.API.Host == o.Peer.Host {
				return nil, cli.Usage("--replica-server", m.Name+"="+m.API.String(),
					"another address than one in --initial-cluster: the API and etcd each need their own port")
			}
		}
	}
	if len(servers) != len(peers) {
		return nil,
			cli.Usage("--replica-server", strings.Join(c.ReplicaServers, " "), "one for each of --initial-cluster, and no more")
	}
	if peers[c.Name] == nil {
		return nil, cli.Usage("--name", c.Name, "one of the names in --initial-cluster: "+strings.Join(names, ", "))
	}
	if err := c.checkPeerBindAddress(peers[c.Name]); err != nil {
		return nil, err
	}
	return members, nil
}

// checkPeerBindAddress finds out where the others come in. A name is not an address to listen on.
func (c *Config) checkPeerBindAddress(url *url.URL) error {
	if c.PeerBindAddress == "" {
		host := url.Hostname()
		if net.ParseIP(host) == nil {
			host = c.BindAddress
		}
		c.PeerBindAddress = net.JoinHostPort(host, url.Port())
	}
	host, port, err := net.SplitHostPort(c.PeerBindAddress)
	if err != nil || net.ParseIP(host) == nil || !replicas.ValidPort(port) {
		return cli.Usage("--peer-bind-address", c.PeerBindAddress, "address:port, with an IP address of this machine")
	}
	return nil
}
