package install

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/install/cluster"
	"github.com/weir-edge/weir/impl/install/host"
	"github.com/weir-edge/weir/impl/tunnel"
)

// rotated is where a kubelet keeps the certificate that it renews.
const rotated = "/var/lib/kubelet/pki/kubelet-client-current.pem"

// kubelet is how the kubelet of this node reaches its cluster without Weir.
type kubelet struct {
	unit            host.Unit
	path            string // of its kubeconfig
	conf            *credential.Kubeconfig
	server          string
	ca              []byte // PEM
	certFile        string // where it renews its certificate; "": it has none, or nowhere
	keyFile         string
	certPEM, keyPEM []byte
	leaf            *x509.Certificate
	node            string
	source          *credential.Source // of what it shows to the cloud in the place of a certificate; nil: it has one
	// certificate and key by which it is its node at its hub whatever becomes of its own.
	local   []byte
	localCA []byte // who signed that
}

// findKubelet reads the unit and the kubeconfig.
func (i *Installer) findKubelet(ctx context.Context) (k *kubelet, err error) {
	k = &kubelet{}
	text, err := i.Host.systemctl(ctx, "cat", kubeletService)
	if err != nil {
		return nil, fmt.Errorf("find the kubelet's unit: %w", err)
	}
	if k.unit, err = host.ParseUnit(text, filepath.Base(dropIn), host.UnitFilesBelow(i.Host.Root, maxFile)); err != nil {
		return nil, fmt.Errorf("%s: %w", kubeletService, err)
	}
	if k.path = i.Kubeconfig; k.path == "" {
		k.path = k.unit.Kubeconfig
	}
	if err := i.readKubeconfig(k); err != nil {
		return nil, fmt.Errorf("kubelet's kubeconfig %s: %w", k.path, err)
	}
	return k, nil
}

func (i *Installer) readKubeconfig(k *kubelet) error {
	if k.path == kubeletConf {
		return errors.New(
			"it is the one of weir node join, and no journal tells of the kubelet's own: name that by --kubelet-kubeconfig")
	}
	text, err := i.Host.read(k.path)
	if err != nil {
		return err
	}
	if k.conf, err = credential.Parse(k.path, text, i.Host.read); err != nil {
		return err
	}
	k.server = k.conf.Server.String()
	if k.ca, err = k.conf.Authorities(); err != nil {
		return err
	}
	return i.readUser(k)
}

func (i *Installer) readUser(k *kubelet) (err error) {
	if !k.conf.HasCertificate() {
		if i.ClientCA != "" {
			return errors.New(
				"its user has no client certificate, and --client-ca-file is for the authority of one: leave it out")
		}
		own, err := k.conf.User()
		k.source = credential.New(credential.Config{User: own, Clock: i.Clock})
		return err
	}
	if k.certPEM, k.keyPEM, err = k.conf.Pair(); err != nil {
		return err
	}
	if k.certFile, k.keyFile = k.conf.Files(); k.conf.Embedded() {
		k.certFile, k.keyFile = rotated, rotated // the kubelet renews it there
		if i.Host.there(rotated) {
			if k.certPEM, err = i.Host.read(rotated); err != nil {
				return fmt.Errorf("client-certificate: %w", err)
			}
			k.keyPEM = k.certPEM
		}
	}
	pair, err := tls.X509KeyPair(k.certPEM, k.keyPEM)
	if err != nil {
		return fmt.Errorf("client-certificate: %w", err)
	}
	if k.leaf = pair.Leaf; credential.IsLocal(k.leaf) {
		return errors.New("client-certificate: it has expired, and the kubelet uses the one that weir node join gave " +
			"it, which the cloud does not take: give the kubelet another, or let it join its cluster again")
	}
	name, ok := strings.CutPrefix(k.leaf.Subject.CommonName, contract.NodeUserPrefix)
	if !ok || !slices.Contains(k.leaf.Subject.Organization, contract.NodesGroup) {
		return fmt.Errorf("client-certificate: it is of %q in %q: want %s<node> in %s", k.leaf.Subject.CommonName,
			k.leaf.Subject.Organization, contract.NodeUserPrefix, contract.NodesGroup)
	}
	k.node = name
	return nil
}

// proxy is by what the kubelet calls the cloud: its kubeconfig says it, else the environment of its unit, else that of
// this process.
func (k *kubelet) proxy() tunnel.Choice {
	if k.conf.Proxy != nil {
		return tunnel.Always(k.conf.Proxy)
	}
	if https, no := k.environment(); https != "" {
		return tunnel.Of(https, no)
	}
	return tunnel.FromEnvironment()
}

// environment is what the kubelet's unit says of proxies.
func (k *kubelet) environment() (https, no string) {
	env := k.unit.Environment
	return cmp.Or(env["HTTPS_PROXY"], env["https_proxy"]), cmp.Or(env["NO_PROXY"], env["no_proxy"])
}

// forHub is the kubeconfig that leads the kubelet to its hub. Its user is the node by what only this hub takes. A
// kubelet that renews a certificate of its own shows that, and this once that has ended: so it has to stand in the
// kubeconfig itself. One that has none reads the file.
func (k *kubelet) forHub(port int) ([]byte, error) {
	user := &clientcmdapi.AuthInfo{ClientCertificate: localPair, ClientKey: localPair}
	if k.source == nil {
		user = &clientcmdapi.AuthInfo{}
		user.ClientCertificateData, user.ClientKeyData = credential.Split(k.local)
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["weir-hub"] = &clientcmdapi.Cluster{Server: "https://" + local(port), CertificateAuthority: authority}
	c.AuthInfos["node"] = user
	c.Contexts["weir-hub"] = &clientcmdapi.Context{Cluster: "weir-hub", AuthInfo: "node"}
	c.CurrentContext = "weir-hub"
	return clientcmd.Write(*c)
}

// localOf gives a kubelet the certificate that only its hub takes: that of a join before, or a new one.
func (i *Installer) localOf(k *kubelet) (err error) {
	pair, _ := i.Host.read(localPair)
	for _, path := range []string{localCA, clientCA} { // the second is that of former versions
		if ca, unread := i.Host.read(path); unread == nil && credential.CheckLocal(ca, pair, k.node, i.Clock.Now()) == nil {
			k.local, k.localCA = pair, ca
			break
		}
	}
	if k.local == nil {
		k.localCA, k.local, err = credential.NewLocal(k.node, i.Clock.Now())
	}
	if k.source != nil {
		k.certPEM, k.keyPEM = k.local, k.local
	}
	return err
}

// cluster is the cloud, asked as the kubelet's node.
func (i *Installer) cluster(k *kubelet) (*cluster.Cluster, error) {
	return cluster.New(cluster.Config{
		Server: k.server, ServerName: k.conf.ServerName, CA: k.ca, Proxy: k.proxy(), CertPEM: k.certPEM, KeyPEM: k.keyPEM,
		Source: k.source, Node: k.node, Clock: i.Clock,
	})
}
