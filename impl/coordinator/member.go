package coordinator

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator/store"
)

// replicaCount is how many replicas a coordinator has that has more than one: any one may die, and no odd number above
// costs less.
const replicaCount = 3

const maxToken = 200

// replicas reads what makes this one of several; none: it is alone. It sets the defaults of that.
func (s *settings) replicas() (members []store.Replica, err error) {
	if s.ClusterState != "" && s.ClusterState != ClusterNew && s.ClusterState != ClusterExisting {
		return nil, cli.Usage("--initial-cluster-state", s.ClusterState, ClusterNew+" or "+ClusterExisting)
	}
	if len(s.InitialCluster) == 0 {
		if s.ClusterState == ClusterExisting || s.ClusterToken != "" || s.Name != "" || len(s.ReplicaServers) > 0 {
			return nil,
				cli.Usage("--initial-cluster", "",
					"name=https://host:port for each of three replicas, or no flag of replicas at all")
		}
		return nil, nil
	}
	if len(s.ClusterToken) > maxToken {
		return nil,
			cli.Usage("--initial-cluster-token", fmt.Sprintf("%.40s… of %d bytes", s.ClusterToken, len(s.ClusterToken)),
				fmt.Sprintf("at most %d bytes", maxToken))
	}
	peers, names, err := store.URLs("--initial-cluster", s.InitialCluster)
	if err != nil {
		return nil, err
	}
	servers, _, err := store.URLs("--replica-server", s.ReplicaServers)
	if err != nil {
		return nil, err
	}
	if len(peers) != replicaCount {
		return nil, cli.Usage("--initial-cluster", strings.Join(s.InitialCluster, " "),
			fmt.Sprintf("%d replicas, or none: with %d a majority is lost as easily", replicaCount, len(peers)))
	}
	for _, name := range names {
		if servers[name] == nil {
			return nil, cli.Usage("--replica-server", strings.Join(s.ReplicaServers, " "),
				"one for each of --initial-cluster: there is none for "+name)
		}
		members = append(members, store.Replica{Name: name, Peer: peers[name], API: servers[name]})
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
			cli.Usage("--replica-server", strings.Join(s.ReplicaServers, " "), "one for each of --initial-cluster, and no more")
	}
	if peers[s.Name] == nil {
		return nil, cli.Usage("--name", s.Name, "one of the names in --initial-cluster: "+strings.Join(names, ", "))
	}
	s.peerAddress = s.listensAt(peers[s.Name])
	return members, nil
}

// listensAt is where the others come in. A name is not an address to listen on.
func (s *settings) listensAt(url *url.URL) string {
	host := url.Hostname()
	if net.ParseIP(host) == nil {
		host = s.BindAddress
	}
	return net.JoinHostPort(host, url.Port())
}
