package install

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/install/host"
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

// Bypasses are the processes of this machine that are connected to the cloud's API past its hub: at the addresses of
// the cloud's servers, or at the one that pods are told.
func (i *Installer) Bypasses(ctx context.Context) ([]host.Process, error) {
	if _, _, err := i.Joined(); err != nil {
		return nil, err
	}
	text, err := i.Host.read(hubConfig)
	if err != nil {
		return nil, err
	}
	var hub struct {
		Servers    []string `json:"cloud-server"`
		Kubeconfig string   `json:"cloud-client-kubeconfig"`
		Secure     int      `json:"secure-port"`
	}
	if err := yaml.Unmarshal(text, &hub); err != nil {
		return nil, fmt.Errorf("%s: %w", hubConfig, err)
	}
	if len(hub.Servers) == 0 {
		conf, err := credential.Load(hub.Kubeconfig)
		if err != nil {
			return nil, fmt.Errorf("the kubelet's kubeconfig %s: %w", hub.Kubeconfig, err)
		}
		hub.Servers = []string{conf.Server.String()}
	}
	to, err := host.APIAddresses()
	if err != nil {
		return nil, err
	}
	// pods that are led to the hub.
	to = slices.DeleteFunc(to, func(a netip.AddrPort) bool { return int(a.Port()) == hub.Secure })
	for _, server := range hub.Servers {
		addresses, err := host.Resolve(ctx, server)
		if err != nil {
			return nil, fmt.Errorf("find the cloud, %s: %w", server, err)
		}
		to = append(to, addresses...)
	}
	all, err := host.Connected(ctx, to)
	return slices.DeleteFunc(all, func(p host.Process) bool {
		return strings.HasPrefix(p.Program, i.Host.at(hubProgram)) || p.PID == os.Getpid()
	}), err
}
