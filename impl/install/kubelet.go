package install

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/install/unit"
)

// rotated is where a kubelet keeps the certificate that it renews.
const rotated = "/var/lib/kubelet/pki/kubelet-client-current.pem"

// kubelet is how the kubelet of this node reaches its cluster without Weir.
type kubelet struct {
	unit             unit.Unit
	path             string // of its kubeconfig
	server           string
	ca               []byte // PEM
	certFile         string // where the kubelet renews it; "": it stands in the kubeconfig and nowhere else
	keyFile          string
	certPEM, keyPEM  []byte
	leaf             *x509.Certificate
	node             string
	user, serverName string
	raw              *clientcmdapi.Config
	localCA          []byte             // who signed what it shows to its hub then
	source           *credential.Source // of what it shows to the cloud in the place of a certificate; nil: it has one
}

// findKubelet reads the unit and the kubeconfig.
func (i *Installer) findKubelet(ctx context.Context) (k *kubelet, err error) {
	k = &kubelet{}
	text, err := i.Host.systemctl(ctx, "cat", kubeletService)
	if err != nil {
		return nil, fmt.Errorf("find the kubelet's unit: %w", err)
	}
	if k.unit, err = unit.Parse(text, filepath.Base(dropIn), unit.Below(i.Host.Root, maxFile)); err != nil {
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
		return errors.New("it is the one of weir node join, and no journal tells of the kubelet's own: name that by --kubelet-kubeconfig")
	}
	text, err := i.Host.read(k.path)
	if err != nil {
		return err
	}
	if k.raw, err = clientcmd.Load(text); err != nil {
		return err
	}
	current := k.raw.Contexts[k.raw.CurrentContext]
	if current == nil {
		return fmt.Errorf("current-context %q is not in it", k.raw.CurrentContext)
	}
	cluster, user := k.raw.Clusters[current.Cluster], k.raw.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return fmt.Errorf("cluster %q or user %q of the current context is not in it", current.Cluster, current.AuthInfo)
	}
	if cluster.InsecureSkipTLSVerify || cluster.ProxyURL != "" {
		return errors.New("insecure-skip-tls-verify and proxy-url are not supported: a hub verifies the cloud, and connects to it straight")
	}
	if strings.HasPrefix(cluster.Server, "http://") {
		return fmt.Errorf("server: %q: want https://, of kube-apiserver; if it is a hub of this machine, as OpenYurt's YurtHub is, lead the kubelet to the cloud first", cluster.Server)
	}
	k.server, k.serverName, k.user = cluster.Server, cluster.TLSServerName, current.AuthInfo
	if k.ca, err = i.either(cluster.CertificateAuthorityData, cluster.CertificateAuthority, k.path); err != nil {
		return fmt.Errorf("certificate-authority: %w", err)
	}
	return i.readUser(k, user, text)
}

func (i *Installer) readUser(k *kubelet, user *clientcmdapi.AuthInfo, text []byte) (err error) {
	if user.ClientCertificate == "" && len(user.ClientCertificateData) == 0 {
		if i.ClientCA != "" {
			return errors.New("its user has no client certificate, and --client-ca-file is for who signs one: leave it out")
		}
		own, err := credential.Parse(k.path, text)
		k.source = credential.New(credential.Config{User: own, Clock: i.Clock})
		return err
	}
	k.certFile, k.keyFile = credential.Beside(k.path, user.ClientCertificate), credential.Beside(k.path, user.ClientKey)
	if k.certPEM, err = i.either(user.ClientCertificateData, user.ClientCertificate, k.path); err != nil {
		return fmt.Errorf("client-certificate: %w", err)
	}
	if k.keyPEM, err = i.either(user.ClientKeyData, user.ClientKey, k.path); err != nil {
		return fmt.Errorf("client-key: %w", err)
	}
	pair, err := tls.X509KeyPair(k.certPEM, k.keyPEM)
	if err != nil {
		return fmt.Errorf("client-certificate: %w", err)
	}
	if len(user.ClientCertificateData) > 0 {
		k.certFile, k.keyFile = "", ""
		if i.Host.there(rotated) { // the kubelet renews it there
			k.certFile, k.keyFile = rotated, rotated
		}
	}
	k.leaf = pair.Leaf
	name, ok := strings.CutPrefix(k.leaf.Subject.CommonName, contract.NodeUserPrefix)
	if !ok || !slices.Contains(k.leaf.Subject.Organization, contract.NodesGroup) {
		return fmt.Errorf("client-certificate: it is of %q in %q: want %s<node> in %s", k.leaf.Subject.CommonName, k.leaf.Subject.Organization, contract.NodeUserPrefix, contract.NodesGroup)
	}
	k.node = name
	return nil
}

// either is what stands in a kubeconfig, or in the file that it names.
func (i *Installer) either(data []byte, path, kubeconfig string) ([]byte, error) {
	if len(data) > 0 {
		return data, nil
	}
	if path == "" {
		return nil, errors.New("there is none")
	}
	return i.Host.read(credential.Beside(kubeconfig, path))
}

// forHub is the kubeconfig that leads the kubelet to its hub, with the same user.
func (k *kubelet) forHub(port int) ([]byte, error) {
	user := k.raw.AuthInfos[k.user].DeepCopy()
	user.ClientCertificate, user.ClientKey = credential.Beside(k.path, user.ClientCertificate), credential.Beside(k.path, user.ClientKey)
	if k.source != nil { // what it shows to the cloud is the hub's to show
		user = &clientcmdapi.AuthInfo{ClientCertificate: localPair, ClientKey: localPair}
	}
	c := clientcmdapi.NewConfig()
	c.Clusters["weir-hub"] = &clientcmdapi.Cluster{Server: "https://" + local(port), CertificateAuthority: authority}
	c.AuthInfos["node"] = user
	c.Contexts["weir-hub"] = &clientcmdapi.Context{Cluster: "weir-hub", AuthInfo: "node"}
	c.CurrentContext = "weir-hub"
	return clientcmd.Write(*c)
}

// local gives a kubelet without a certificate the one that it shows to its hub: that of a join before, or a new one.
func (i *Installer) local(k *kubelet) (err error) {
	pair, unread := i.Host.read(localPair)
	if k.localCA, err = i.Host.read(clientCA); unread != nil || err != nil || credential.CheckLocal(k.localCA, pair, k.node, i.Clock.Now()) != nil {
		k.localCA, pair, err = credential.NewLocal(k.node, i.Clock.Now())
	}
	k.certPEM, k.keyPEM = pair, pair
	return err
}

// pinned tells whether one of the authorities has one of the hashes.
func pinned(bundle []byte, hashes []string) error {
	if len(hashes) == 0 {
		return nil
	}
	var got []string
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
		h := "sha256:" + hex.EncodeToString(sum[:])
		if slices.ContainsFunc(hashes, func(want string) bool { return strings.EqualFold(want, h) }) {
			return nil
		}
		got = append(got, h)
	}
	return fmt.Errorf("the authority of the kubelet's kubeconfig is %s: want %s", strings.Join(got, ", "), strings.Join(hashes, " or "))
}
