package hub

import (
	"context"
	"crypto/tls"
	"net"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/access"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/nodelocal"
	"github.com/weir-edge/weir/impl/hub/uplink"
)

// kubeProxy is the ConfigMap whose kubeconfig.conf leads kube-proxy to the hub of a node that reads it. kubeadm names
// it so; a cluster whose kube-proxy has another has none of this name, and nothing is changed.
const kubeProxy = "kube-system/kube-proxy"

// own is what a hub is for its node alone.
type own struct {
	serving   serving
	callers   *nodelocal.Callers
	authority *nodelocal.Authority // nil: it has none, and so for what follows
	filter    *filter.Own
	pods      *nodelocal.Pods
}

// serving is what the hub shows to the one that connects, and wants to see.
type serving struct {
	cert    uplink.Certificate
	callers *uplink.Bundle // who signs certificates of callers; nil: they are not asked for
	own     bool           // the node's own authority does as well
}

// config asks for a client certificate if there are authorities that could have signed it.
func (s *serving) config() *tls.Config { return door.TLS(s.cert, s.callers != nil || s.own) }

// openOwn makes the authority of this node, unless the hub's certificate is of another.
func openOwn(m *machine) (o own, err error) {
	if len(m.ClientCAFiles) > 0 {
		if o.serving.callers, err = m.reload.Kept("--client-ca-file", filepath.Join(m.DataDir, "client-ca.crt"),
			m.ClientCAFiles...); err != nil {
			return o, err
		}
	}
	o.callers = nodelocal.OpenCallers(filepath.Join(m.DataDir, nodelocal.CallersFile), m.Logger)
	if m.serves {
		o.serving.cert, err = m.reload.Pair(inEtc(servingPair), m.etc(servingPair))
		return o, err
	}
	a, err := nodelocal.OpenAuthority(nodelocal.AuthorityConfig{
		Node: m.NodeName, Dir: filepath.Join(m.DataDir, "pki"), File: m.etc(nodeAuthority), Hosts: m.hosts, Clock: m.clock,
		Logger: m.Logger,
	})
	if err != nil {
		return o, cli.Usage("--data-dir, --etc-dir", m.DataDir+", "+m.EtcDir,
			"places that this process may write: "+err.Error())
	}
	o.authority, o.serving.cert, o.serving.own = a, a, true
	o.pods = nodelocal.NewPods(nodelocal.PodsConfig{
		Address: m.PodsAddress, File: filepath.Join(m.DataDir, "pods"), Known: len(a.Restored()) > 0, Wait: m.PodsWait,
		Listen: func(address string, port int) (net.Listener, error) {
			return door.Listen(m.Net, "--secure-port", address, port)
		},
		Machine: nodelocal.System{}, Beside: m.secure.Addr, Clock: m.clock, Logger: m.Logger,
	})
	m.opened = append(m.opened, o.pods.Close)
	o.filter = filter.NewOwn(filter.OwnConfig{
		Node: m.NodeName, Roots: a.Restored(), Pods: o.pods.Before(), KubeProxy: kubeProxy,
		Server: func() string { return door.URL(m.secure.Addr()) }, // where processes on this node's own network call the hub
		Reads:  o.pods.Reads, Shown: o.pods.Shown, Untouched: counted(m.metrics.untouched), Clock: m.clock, Logger: m.Logger,
	})
	o.pods.Follow(o.filter.SetPods)
	o.filter.SetRoots(a.Trusted())
	a.Follow(o.filter.SetRoots)
	_ = o.pods.Open() // Run tries again, and tells
	return o, nil
}

// hosts are all addresses and names of the hub's certificate.
func (s *settings) hosts() []string {
	master, _, _ := net.SplitHostPort(s.MasterServiceAddress)
	return nodelocal.Hosts(s.BindAddress, slices.Concat(s.TLSHosts, []string{s.NodeName, master, s.PodsAddress})...)
}

// signer is who has signed the credential of this node's kubelet; nil: nobody.
func (o *own) signer() access.Authority {
	if o.authority == nil {
		return nil
	}
	return o.authority
}

// run looks after the node's own certificates.
func (o *own) run(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error { return o.callers.Run(ctx) })
	if o.authority != nil {
		g.Go(func() error { return o.authority.Run(ctx) })
	}
}
