package nodelocal

import (
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-edge/weir/impl/cli"
)

// maxHosts is how many addresses and names the hub's certificate may have.
const maxHosts = 32

// always are the names at which this node's clients call the hub, whatever its address.
var always = []string{
	"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
}

// CheckHosts reports which of --tls-hosts is invalid.
func CheckHosts(asked []string) error {
	if len(asked) > maxHosts/2 {
		return cli.Usage("--tls-hosts", len(asked), "16 at most")
	}
	for _, h := range asked {
		if net.ParseIP(h) == nil && len(validation.IsDNS1123Subdomain(h)) > 0 {
			return cli.Usage("--tls-hosts", h, "an IP address, or a DNS name of small letters without *")
		}
	}
	return nil
}

// Hosts are all addresses and names of the certificate of a hub that listens at an address, those that were asked for
// first. What is empty is none.
func Hosts(bind string, asked ...string) []string {
	all := slices.Concat(asked, always)
	if ip := net.ParseIP(bind); ip.IsUnspecified() {
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
		if h != "" && !slices.Contains(unique, h) {
			unique = append(unique, h)
		}
	}
	return unique[:min(len(unique), maxHosts)]
}
