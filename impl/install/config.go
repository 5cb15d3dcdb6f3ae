package install

import (
	"cmp"
	"encoding/hex"
	"io"
	"maps"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/contract"
)

// Config of an Installer.
type Config struct {
	// Pool is the pool that the node is in. Required to join.
	Pool string
	// Token is a bootstrap token of this node, by which the hub asks for its certificate in the pool; "": it asks as its
	// node.
	Token string
	// Hashes are sha256:… of the public keys of the cluster's authority, of which one has to be that of the kubelet's
	// kubeconfig; none: it is trusted as the kubelet does.
	Hashes []string
	// Hub is the program weir-hub that is installed. Required to join.
	Hub string
	// Kubeconfig is the kubelet's; "": the one that its unit names.
	Kubeconfig string
	// ClientCA is the file of the authority that signs the kubelet's certificate; "": that of the kubeconfig.
	ClientCA string
	// Coordinator says that weir-manager may run the pool's coordinator, or a replica of it, on this node: its hub gets
	// the certificates then.
	Coordinator bool
	// Pods says that pods of this node are led to the hub, when they trust it.
	Pods bool
	// Images says that containerd asks the hub for images first, where it can be told so; nil: what a join before said,
	// else true.
	Images *bool
	// Abandon says that Leave takes the hub away from pods that call it and that nobody starts again.
	Abandon bool
	// PoolAddress is --pool-address of the hub.
	PoolAddress string
	Ports       Ports
	// Timeout is for the start of the hub, and again for the kubelet to be heard through it; 0: 2 minutes.
	Timeout time.Duration

	Host  Host
	Clock clock.WithTicker // nil: the machine's
	Out   io.Writer        // what is done, a line each; nil: nobody is told
}

// Ports of the hub.
type Ports struct{ Secure, Health, Pool, Images int }

// flags are the ports by the names of their flags.
func (p *Ports) flags() map[string]*int {
	return map[string]*int{
		"--secure-port": &p.Secure, "--health-port": &p.Health, "--pool-port": &p.Pool, "--images-port": &p.Images,
	}
}

const defaultTimeout = 2 * time.Minute

var tokenForm = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)

// check fills in what is left out, and reports what is invalid.
func (c *Config) check() error {
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	c.Clock = cmp.Or[clock.WithTicker](c.Clock, clock.RealClock{})
	c.Out = cmp.Or[io.Writer](c.Out, io.Discard)
	c.Ports.Secure, c.Ports.Health = cmp.Or(c.Ports.Secure, contract.HubSecurePort),
		cmp.Or(c.Ports.Health, contract.HubHealthPort)
	c.Ports.Pool, c.Ports.Images = cmp.Or(c.Ports.Pool, contract.HubPoolPort),
		cmp.Or(c.Ports.Images, contract.HubImagesPort)
	c.Host.fill()
	if c.Timeout < 0 {
		return cli.Usage("--timeout", c.Timeout, "more than 0")
	}
	all := c.Ports.flags()
	given := map[int]string{}
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		port := *all[flag]
		if port < 1 || port > 65535 {
			return cli.Usage(flag, port, "a TCP port, 1 to 65535")
		}
		if other, twice := given[port]; twice {
			return cli.Usage(other+", "+flag, port, "two different ones")
		}
		given[port] = flag
	}
	return nil
}

// checkJoin tells what is wrong in what only Join needs.
func (c *Config) checkJoin() error {
	if why := validation.IsValidLabelValue(c.Pool); c.Pool == "" || len(why) > 0 {
		return cli.Usage("--pool", c.Pool, "the name of the pool whose label "+contract.NodePoolLabel+" the Node has")
	}
	if c.Token != "" && !tokenForm.MatchString(c.Token) {
		return cli.Usage("--token", secret(c.Token),
			"a bootstrap token: 6 characters, a dot, 16 characters, of a to z and 0 to 9")
	}
	for _, h := range c.Hashes {
		kind, sum, _ := strings.Cut(h, ":")
		if b, err := hex.DecodeString(sum); kind != "sha256" || err != nil || len(b) != 32 {
			return cli.Usage("--discovery-token-ca-cert-hash", h, "sha256: and 64 hexadecimal digits, as kubeadm prints it")
		}
	}
	for flag, path := range map[string]string{
		"--hub-binary": c.Hub, "--kubelet-kubeconfig": c.Kubeconfig, "--client-ca-file": c.ClientCA,
	} {
		if path != "" && !filepath.IsAbs(path) {
			return cli.Usage(flag, path, "an absolute path: a unit will name it")
		}
	}
	if c.Hub == "" {
		return cli.Usage("--hub-binary", "", "the path of weir-hub")
	}
	if c.PoolAddress != "" {
		if _, _, err := contract.ParsePoolAddress(c.PoolAddress); err != nil {
			return cli.Usage("--pool-address", c.PoolAddress, "IP address and port, or "+contract.PoolAddressReverse)
		}
	}
	return nil
}

// secret is what may be told of a token: its first half is a name.
func secret(token string) string {
	id, _, ok := strings.Cut(token, ".")
	if !ok || len(id) > 6 {
		return "…"
	}
	return id + ".…"
}

func local(port int) string {
	//nolint:gosec // check saw to it
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(port)).String()
}
