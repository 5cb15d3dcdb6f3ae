package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/sockets"
)

// ErrNotJoined is of a machine that has no hub of `weir node join`.
var ErrNotJoined = errors.New("this machine has not joined a pool by weir node join")

// Joined tells which Node of which pool this machine is.
func (i *Installer) Joined() (node, pool string, err error) {
	j, err := i.Host.load()
	switch {
	case err != nil:
		return "", "", err
	case j == nil || j.State != Joined:
		return "", "", ErrNotJoined
	}
	return j.Node, j.Pool, nil
}

// Bypasses are the processes of this machine that are connected to the cloud's API past its hub: at the addresses of the hub's --cloud-server, or at the one that pods are told.
func (i *Installer) Bypasses(ctx context.Context) ([]sockets.Process, error) {
	if _, _, err := i.Joined(); err != nil {
		return nil, err
	}
	text, err := i.Host.read(hubConfig)
	if err != nil {
		return nil, err
	}
	var hub struct {
		Servers []string `json:"cloud-server"`
		Secure  int      `json:"secure-port"`
	}
	if err := yaml.Unmarshal(text, &hub); err != nil {
		return nil, fmt.Errorf("%s: %w", hubConfig, err)
	}
	to, err := sockets.API()
	if err != nil {
		return nil, err
	}
	to = slices.DeleteFunc(to, func(a netip.AddrPort) bool { return int(a.Port()) == hub.Secure }) // pods that are led to the hub
	for _, server := range hub.Servers {
		addresses, err := resolve(ctx, server)
		if err != nil {
			return nil, fmt.Errorf("find the cloud, %s: %w", server, err)
		}
		to = append(to, addresses...)
	}
	all, err := sockets.Connected(ctx, to)
	return slices.DeleteFunc(all, func(p sockets.Process) bool {
		return strings.HasPrefix(p.Program, i.Host.at(hubProgram)) || p.PID == os.Getpid()
	}), err
}

// resolve finds the addresses of a server.
func resolve(ctx context.Context, server string) (all []netip.AddrPort, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	hosts, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	for _, h := range hosts {
		all = append(all, netip.AddrPortFrom(h.Unmap(), uint16(port)))
	}
	return all, err
}
