package hub

import (
	"net"
	"path/filepath"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/filter"
	"github.com/weir-edge/weir/impl/hub/door"
	"github.com/weir-edge/weir/impl/hub/nodeauthority"
	"github.com/weir-edge/weir/impl/hub/pods"
	"github.com/weir-edge/weir/impl/pki"
)

// kubeProxy is the ConfigMap whose kubeconfig.conf leads kube-proxy to the hub of a node that reads it. kubeadm names
// it so; a cluster whose kube-proxy has another has none of this name, and nothing is changed.
const kubeProxy = "kube-system/kube-proxy"

// buildOwn makes the authority of this node, unless the hub's certificate is of another.
func (h *Hub) buildOwn() (err error) {
	h.own.callers = pods.OpenCallers(filepath.Join(h.DataDir, pods.CallersFile), h.Logger)
	if !h.ownsAuthority() {
		return nil
	}
	a, err := nodeauthority.Open(nodeauthority.Config{
		Node: h.NodeName, Dir: filepath.Join(h.DataDir, "pki"), File: h.etc(nodeAuthority), Hosts: h.hosts, Clock: h.clock,
		Logger: h.Logger,
	})
	if err != nil {
		return cli.Usage("--data-dir, --etc-dir", h.DataDir+", "+h.EtcDir,
			"places that this process may write: "+err.Error())
	}
	h.own.authority, h.serving.cert, h.serving.own = a, a, true
	h.own.pods = pods.New(pods.Config{
		Address: h.PodsAddress, File: filepath.Join(h.DataDir, "pods"), Known: len(a.Restored()) > 0, Wait: h.PodsWait,
		Listen: func(address string, port int) (net.Listener, error) {
			return door.Listen(h.Net, "--secure-port", address, port)
		},
		Machine: pods.System{}, Beside: h.Addr, Lead: func(to string) { h.own.filter.SetPods(to) },
		Clock: h.clock, Logger: h.Logger,
	})
	h.own.filter = filter.NewOwn(filter.OwnConfig{
		Node: h.NodeName, Roots: a.Restored(), Pods: h.own.pods.Before(), KubeProxy: kubeProxy, Server: h.ownURL,
		Reads: h.own.pods.Reads, Shown: h.own.pods.Shown,
		Untouched: counted(h.metrics.untouched), Clock: h.clock, Logger: h.Logger,
	})
	h.own.filter.SetRoots(a.Trusted())
	a.Follow(h.own.filter.SetRoots)
	return nil
}

// nodeCounts reports whether what the hub is its node by at the cloud is valid now.
func (h *Hub) nodeCounts() bool {
	if h.shows != nil {
		return h.shows.Counts()
	}
	c := h.node.Get()
	return c != nil && pki.CheckSpan(c.Leaf, h.time.Now()) == nil
}

// ownURL is where processes on this node's own network call the hub.
func (h *Hub) ownURL() string { return door.URL(h.Addr()) }
