package runtime

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-edge/weir/sim/parts"
	"github.com/weir-edge/weir/sim/testca"
)

const (
	proxyPort = 10249 // of what a node's kube-proxy is asked
	// DNSPort is where CoreDNS listens in its pods.
	DNSPort = 5353
	// DNSImage is what pods of CoreDNS run on hollow nodes of a pool with names: the program, with Machine.Corefile.
	DNSImage = "localhost/coredns:testbed"
	// DNSDomain is the domain of the cluster.
	DNSDomain = "cluster.local"

	// Modules of the programs that lead to Services by their names.
	proxyModule = "sim/controlplane/hollow-proxy"
	dnsModule   = "kind/node-image/coredns"
)

// names are the programs that lead to Services by their names.
type names struct{ proxy, dns string }

// findNames builds them.
func (s *localSite) findNames(ctx context.Context, progress Progress) (err error) {
	if s.names.proxy, err = parts.FindNested(ctx, s.spawner, progress, proxyModule, "."); err != nil {
		return err
	}
	s.names.dns, err = parts.FindNested(ctx, s.spawner, progress, dnsModule, ".")
	return err
}

// addNames prepares the kube-proxy of a hollow node and what CoreDNS reads there. Both reach the API server as other
// clients of the node do.
func (x *localPool) addNames(ctx context.Context, dir, name, address string, m *Machine) error {
	kubeconfig, err := x.clientConfig(ctx, dir, name, "kube-proxy")
	if err != nil {
		return err
	}
	ask := net.JoinHostPort(address, strconv.Itoa(proxyPort))
	m.Proxy = "http://" + ask
	x.site.addPart(ProxyOf(name), parts.NewCommand(parts.Launch{
		Spawner: x.site.spawner, Path: x.site.names.proxy, Dir: dir, Name: "kube-proxy of " + name,
		LogFile: filepath.Join(x.site.logDir, "proxy-"+name+".log"),
	}, []string{"--name=" + name, "--kubeconfig=" + kubeconfig, "--address=" + ask}, m.Proxy, http.DefaultTransport))
	if kubeconfig, err = x.clientConfig(ctx, dir, name, "coredns"); err != nil {
		return err
	}
	m.Corefile, err = testca.WriteFile(dir, "Corefile", corefile(kubeconfig))
	return err
}

// corefile is that of kubeadm, without what leads out of the cluster, and without what all clusters on this machine
// would have at the same port.
func corefile(kubeconfig string) []byte {
	return fmt.Appendf(nil, `.:%d {
    bind {$HOLLOW_ADDRESS}
    errors
    kubernetes %s in-addr.arpa ip6.arpa {
       kubeconfig %s
       pods insecure
       ttl 30
    }
    cache 30 {
       disable success %[2]s
       disable denial %[2]s
    }
    loadbalance
}
`, DNSPort, DNSDomain, kubeconfig)
}

// clientConfig is the kubeconfig of a client of the workload on a node.
func (x *localPool) clientConfig(ctx context.Context, dir, node, identity string) (path string, err error) {
	endpoint, err := x.site.Endpoint(node, ClassPool)
	if err != nil {
		return "", err
	}
	token, err := x.site.Token(ctx, identity)
	if err != nil {
		return "", err
	}
	data, err := testca.KubeconfigOf(&clientcmdapi.Cluster{
		Server: endpoint.URL, CertificateAuthorityData: endpoint.CAPEM, CertificateAuthority: endpoint.CAFile,
	}, nil, token)
	if err != nil {
		return "", err
	}
	return testca.WriteFile(dir, identity+".kubeconfig", data)
}
