package hub

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/nodeauthority"
	"github.com/weir-edge/weir/impl/pki"
)

// maxHosts is how many addresses and names the hub's certificate may have.
const maxHosts = 32

// ownHosts are the names at which this node's clients call the hub, whatever its address.
var ownHosts = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}

// own is what a hub is by its node's own authority.
type own struct {
	authority *nodeauthority.Authority
	filter    *filter.Own
}

// ownsAuthority tells whether the hub's certificate comes from its node's own authority.
func (s *settings) ownsAuthority() bool { return s.TLSCertFile == "" && s.TLSPrivateKeyFile == "" }

func (s *settings) checkOwn() error {
	if !s.ownsAuthority() {
		if len(s.TLSHosts) > 0 {
			return cli.Usage("--tls-hosts", s.TLSHosts, "none with --tls-cert-file, which has its own")
		}
		return needFiles("--tls-cert-file", s.TLSCertFile, "--tls-private-key-file", s.TLSPrivateKeyFile)
	}
	if len(s.TLSHosts) > maxHosts/2 {
		return cli.Usage("--tls-hosts", len(s.TLSHosts), "16 at most")
	}
	for _, h := range s.TLSHosts {
		if net.ParseIP(h) == nil && len(validation.IsDNS1123Subdomain(h)) > 0 {
			return cli.Usage("--tls-hosts", h, "an IP address, or a DNS name of small letters without *")
		}
	}
	if namespace, name, ok := strings.Cut(s.KubeProxyConfigMap, "/"); s.KubeProxyConfigMap != "" && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")) {
		return cli.Usage("--kube-proxy-configmap", s.KubeProxyConfigMap, "namespace/name of a ConfigMap, or nothing")
	}
	if len(validation.IsDNS1123Subdomain(s.NodeName)) > 0 {
		return cli.Usage("--node-name", s.NodeName, "the name of a Node: small letters, digits, - and .")
	}
	return nil
}

// buildOwn makes the authority of this node, unless the hub's certificate is of another.
func (h *Hub) buildOwn() (err error) {
	if !h.ownsAuthority() {
		return nil
	}
	a, err := nodeauthority.Open(nodeauthority.Config{
		Node: h.NodeName, Dir: filepath.Join(h.DataDir, "pki"), File: h.NodeAuthorityFile, Hosts: h.hosts, Clock: h.clock, Logger: h.Logger,
	})
	if err != nil {
		return cli.Usage("--data-dir, --node-authority-file", h.DataDir+", "+h.NodeAuthorityFile, "places that this process may write: "+err.Error())
	}
	h.own.authority, h.serving.cert, h.serving.own = a, a, true
	h.own.filter = filter.NewOwn(filter.OwnConfig{
		Node: h.NodeName, Roots: a.Restored(), KubeProxy: h.KubeProxyConfigMap, Server: h.ownURL,
		Untouched: counted(h.metrics.untouched), Clock: h.clock, Logger: h.Logger,
	})
	h.own.filter.SetRoots(a.Trusted())
	a.Follow(h.own.filter.SetRoots)
	return nil
}

// nodeCounts tells whether the certificate by which the hub is its node at the cloud is valid now.
func (h *Hub) nodeCounts() bool {
	c := h.node.Get()
	return c != nil && pki.CheckSpan(c.Leaf, h.now()) == nil
}

// judge is who has signed the credential of this node's kubelet; nil: nobody.
func (o *own) judge() access.Authority {
	if o.authority == nil {
		return nil
	}
	return o.authority
}

// run looks after the node's own certificates.
func (o *own) run(ctx context.Context, g *errgroup.Group) {
	if o.authority != nil {
		g.Go(func() error { return o.authority.Run(ctx) })
	}
}

// ownURL is where processes on this node's own network call the hub.
func (h *Hub) ownURL() string {
	host, port, _ := net.SplitHostPort(h.Addr().String())
	if net.ParseIP(h.BindAddress).IsUnspecified() {
		host = "127.0.0.1"
	}
	return "https://" + net.JoinHostPort(host, port)
}

// hosts are all addresses and names of the hub's certificate, those that were asked for first.
func (s *settings) hosts() []string {
	all := slices.Concat(s.TLSHosts, []string{s.NodeName}, ownHosts)
	if host, _, err := net.SplitHostPort(s.MasterServiceAddress); err == nil {
		all = append(all, host)
	}
	if ip := net.ParseIP(s.BindAddress); ip.IsUnspecified() {
		all = append(all, "127.0.0.1", "::1")
		addresses, _ := net.InterfaceAddrs() // what cannot be read now is in it later
		for _, a := range addresses {
			if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
				all = append(all, n.IP.String())
			}
		}
	} else {
		all = append(all, ip.String())
	}
	unique := all[:0]
	for _, h := range all {
		if !slices.Contains(unique, h) {
			unique = append(unique, h)
		}
	}
	return unique[:min(len(unique), maxHosts)]
}
