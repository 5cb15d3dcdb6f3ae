package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
)

const (
	configDir  = "/etc/cni/net.d"
	configName = "10-kindnet.conflist" // the name that kind knows
	masqChain  = "WEIR-MASQ"
	// protocol marks the routes of this agent in the kernel's table, so that it removes no others.
	protocol = 77
)

const configFormat = `{"cniVersion":"1.0.0","name":"kindnet","plugins":[
 {"type":"ptp","ipMasq":false,"ipam":{
  "type":"host-local","dataDir":"/run/cni-ipam-state","routes":[{"dst":"0.0.0.0/0"}],"ranges":[[{"subnet":"%s"}]]}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
`

// agent brings the network of one node into the state that the list of nodes asks for.
type agent struct {
	hostIP net.IP
	subnet *net.IPNet // of all pods of the cluster
}

func newAgent(hostIP, podSubnet string) (*agent, error) {
	ip := net.ParseIP(hostIP).To4()
	if ip == nil {
		return nil, fmt.Errorf("HOST_IP is %q: an IPv4 address of this node is needed", hostIP)
	}
	_, subnet, err := net.ParseCIDR(podSubnet)
	if err != nil || subnet.IP.To4() == nil {
		return nil, fmt.Errorf("POD_SUBNET is %q: an IPv4 range is needed", podSubnet)
	}
	return &agent{hostIP: ip, subnet: subnet}, nil
}

// apply tries everything even when a part fails.
func (a *agent) apply(nodes []*corev1.Node) error {
	var errs []error
	want := map[string]*netlink.Route{}
	for _, node := range nodes {
		_, pods, err := net.ParseCIDR(node.Spec.PodCIDR)
		if err != nil || pods.IP.To4() == nil {
			continue // no range yet
		}
		switch ip := internalIP(node); {
		case ip == nil:
		case ip.Equal(a.hostIP):
			errs = append(errs, a.masquerade(), writeConfig(pods))
		default:
			want[pods.String()] = &netlink.Route{Dst: pods, Gw: ip, Protocol: protocol}
		}
	}
	return errors.Join(append(errs, setRoutes(want))...)
}

func internalIP(node *corev1.Node) net.IP {
	for _, address := range node.Status.Addresses {
		if ip := net.ParseIP(address.Address).To4(); address.Type == corev1.NodeInternalIP && ip != nil {
			return ip
		}
	}
	return nil
}

// setRoutes sets the wanted routes and removes those of nodes that are gone.
func setRoutes(want map[string]*netlink.Route) error {
	var errs []error
	for pods, route := range want {
		if err := netlink.RouteReplace(route); err != nil {
			errs = append(errs, fmt.Errorf("route %s via %s: %w", pods, route.Gw, err))
		}
	}
	have, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: protocol},
		netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("list routes: %w", err))...)
	}
	for i := range have {
		if have[i].Dst == nil || want[have[i].Dst.String()] != nil {
			continue
		}
		if err := netlink.RouteDel(&have[i]); err != nil {
			errs = append(errs, fmt.Errorf("remove route %s: %w", have[i].Dst, err))
		}
	}
	return errors.Join(errs...)
}

// writeConfig replaces the CNI configuration in one step when it differs; the kubelet reports Ready once it is there.
func writeConfig(pods *net.IPNet) error {
	path, config := filepath.Join(configDir, configName), fmt.Sprintf(configFormat, pods)
	if have, err := os.ReadFile(path); err == nil && string(have) == config {
		return nil
	}
	temp := filepath.Join(configDir, ".weir-cni-agent")
	if err := os.WriteFile(temp, []byte(config), 0o644); err != nil {
		return fmt.Errorf("write the CNI configuration: %w", err)
	}
	if err := os.Rename(temp, path); err != nil {
		return fmt.Errorf("write the CNI configuration: %w", err)
	}
	slog.Info("wrote the CNI configuration", "pods", pods)
	return nil
}

// masquerade lets pods reach what is outside of the pod network under the node's address.
func (a *agent) masquerade() error {
	_ = iptables("-N", masqChain) // fails when it is there
	for _, rule := range [][]string{
		{masqChain, "-d", a.subnet.String(), "-j", "RETURN"},
		{masqChain, "-j", "MASQUERADE"},
		{"POSTROUTING", "-s", a.subnet.String(), "-m", "addrtype", "!", "--dst-type", "LOCAL", "-j", masqChain},
	} {
		if iptables(append([]string{"-C"}, rule...)...) == nil {
			continue
		}
		if err := iptables(append([]string{"-A"}, rule...)...); err != nil {
			return err
		}
	}
	return nil
}

func iptables(args ...string) error {
	args = append([]string{"-w", "-t", "nat"}, args...)
	if out, err := exec.Command("iptables", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("iptables %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
