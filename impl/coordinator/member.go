package coordinator

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/cli"
)

// replicaCount is how many replicas a coordinator has that has more than one: any one may die, and no odd number above costs less.
const replicaCount = 3

// member is one of several replicas.
type member struct {
	name string
	peer *url.URL // where replicas meet
	api  *url.URL
}

// replicas reads what makes this one of several; none: it is alone. It sets the defaults of that.
func (c *Config) replicas() (members []member, err error) {
	if len(c.InitialCluster) == 0 {
		if c.Name != "" || len(c.ReplicaServers) > 0 || c.PeerBindAddress != "" || c.PeerCertFile != "" || c.PeerKeyFile != "" || c.PeerCAFile != "" {
			return nil, cli.Usage("--initial-cluster", "", "name=https://host:port for each of three replicas, or no flag of replicas at all")
		}
		return nil, nil
	}
	peers, names, err := namedURLs("--initial-cluster", c.InitialCluster)
	if err != nil {
		return nil, err
	}
	servers, _, err := namedURLs("--replica-server", c.ReplicaServers)
	if err != nil {
		return nil, err
	}
	if len(peers) != replicaCount {
		return nil, cli.Usage("--initial-cluster", strings.Join(c.InitialCluster, " "), fmt.Sprintf("%d replicas, or none: with %d a majority is lost as easily", replicaCount, len(peers)))
	}
	for _, name := range names {
		if servers[name] == nil {
			return nil, cli.Usage("--replica-server", strings.Join(c.ReplicaServers, " "), "one for each of --initial-cluster: there is none for "+name)
		}
		members = append(members, member{name, peers[name], servers[name]})
	}
	for _, m := range members {
		for _, o := range members {
			if m.api.Host == o.peer.Host {
				return nil, cli.Usage("--replica-server", m.name+"="+m.api.String(), "another address than one in --initial-cluster: the API and etcd each need their own port")
			}
		}
	}
	if len(servers) != len(peers) {
		return nil, cli.Usage("--replica-server", strings.Join(c.ReplicaServers, " "), "one for each of --initial-cluster, and no more")
	}
	if peers[c.Name] == nil {
		return nil, cli.Usage("--name", c.Name, "one of the names in --initial-cluster: "+strings.Join(names, ", "))
	}
	if err := c.checkPeerBindAddress(peers[c.Name]); err != nil {
		return nil, err
	}
	if c.PeerCAFile == "" {
		c.PeerCAFile = c.ClientCAFile
	}
	for _, f := range [][2]string{{"--peer-cert-file", c.PeerCertFile}, {"--peer-key-file", c.PeerKeyFile}} {
		if f[1] == "" {
			return nil, cli.Usage(f[0], "", "the path of a PEM file; one of several replicas needs it")
		}
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
	if err != nil || net.ParseIP(host) == nil || !validPort(port) {
		return cli.Usage("--peer-bind-address", c.PeerBindAddress, "address:port, with an IP address of this machine")
	}
	return nil
}

// namedURLs reads name=https://host:port.
func namedURLs(flag string, list []string) (byName map[string]*url.URL, names []string, err error) {
	byName, owner := map[string]*url.URL{}, map[string]string{}
	for _, s := range list {
		name, text, _ := strings.Cut(s, "=")
		u, err := url.Parse(text)
		if err != nil || len(validation.IsDNS1123Label(name)) > 0 || !plainHTTPS(u) {
			return nil, nil, cli.Usage(flag, s, "name=https://host:port, with a name of lower-case letters, digits and '-'")
		}
		if byName[name] != nil {
			return nil, nil, cli.Usage(flag, s, "each name once")
		}
		if other := owner[u.Host]; other != "" {
			return nil, nil, cli.Usage(flag, s, "each address once: it is that of "+other)
		}
		u.Path = ""
		byName[name], names, owner[u.Host] = u, append(names, name), name
	}
	return byName, names, nil
}

// plainHTTPS tells whether a URL is https://host:port and nothing more.
func plainHTTPS(u *url.URL) bool {
	return u.Scheme == "https" && u.Hostname() != "" && validPort(u.Port()) && u.User == nil && strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

func validPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}
