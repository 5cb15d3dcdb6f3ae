package coordinator

import (
	"fmt"
	"net/url"
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

// checkReplicas reads what makes this one of several.
func (s *settings) checkReplicas() error {
	if len(s.InitialCluster) == 0 {
		if s.Name != "" || len(s.ReplicaServers) > 0 || s.PeerBindAddress != "" {
			return cli.Usage("--initial-cluster", "", "name=https://host:port for each of three replicas, or no flag of replicas at all")
		}
		return nil
	}
	peers, names, err := namedURLs("--initial-cluster", s.InitialCluster)
	if err != nil {
		return err
	}
	servers, _, err := namedURLs("--replica-server", s.ReplicaServers)
	if err != nil {
		return err
	}
	if len(peers) != replicaCount {
		return cli.Usage("--initial-cluster", strings.Join(s.InitialCluster, " "), fmt.Sprintf("%d replicas, or none: with %d a majority is lost as easily", replicaCount, len(peers)))
	}
	for _, name := range names {
		if servers[name] == nil {
			return cli.Usage("--replica-server", strings.Join(s.ReplicaServers, " "), "one for each of --initial-cluster: there is none for "+name)
		}
		s.members = append(s.members, member{name, peers[name], servers[name]})
	}
	if len(servers) != len(peers) {
		return cli.Usage("--replica-server", strings.Join(s.ReplicaServers, " "), "one for each of --initial-cluster, and no more")
	}
	if peers[s.Name] == nil {
		return cli.Usage("--name", s.Name, "one of the names in --initial-cluster: "+strings.Join(names, ", "))
	}
	if s.PeerBindAddress == "" {
		s.PeerBindAddress = peers[s.Name].Host
	}
	if s.PeerCAFile == "" {
		s.PeerCAFile = s.ClientCAFile
	}
	for _, f := range [][2]string{{"--peer-cert-file", s.PeerCertFile}, {"--peer-key-file", s.PeerKeyFile}} {
		if f[1] == "" {
			return cli.Usage(f[0], "", "the path of a PEM file; one of several replicas needs it")
		}
	}
	return nil
}

// namedURLs reads name=https://host:port.
func namedURLs(flag string, list []string) (byName map[string]*url.URL, names []string, err error) {
	byName = map[string]*url.URL{}
	for _, s := range list {
		name, text, _ := strings.Cut(s, "=")
		u, err := url.Parse(text)
		if err != nil || len(validation.IsDNS1123Label(name)) > 0 || u.Scheme != "https" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return nil, nil, cli.Usage(flag, s, "name=https://host:port, with a name of lower-case letters, digits and '-'")
		}
		if byName[name] != nil {
			return nil, nil, cli.Usage(flag, s, "each name once")
		}
		u.Path = ""
		byName[name], names = u, append(names, name)
	}
	return byName, names, nil
}
