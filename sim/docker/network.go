package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// dynamicBits is the length of the range from which the engine gives addresses; those after it are for Network.Addr.
const dynamicBits = 24

// Network is a bridge of its own: containers in it reach each other, the world, and this machine at Gateway. It has
// IPv4 only, so that there is one way less to forget.
type Network struct {
	Name    string
	Gateway string
	Labels  map[string]string
	subnet  netip.Prefix
}

// CreateNetwork creates a network at addresses that the engine chooses.
func CreateNetwork(ctx context.Context, name string, labels map[string]string) (*Network, error) {
	// Fixed addresses need a subnet that was given, and which are free only the engine knows: have it choose, and ask for
	// that.
	for range 5 {
		if _, err := Run(ctx, "network", "create", name); err != nil {
			return nil, fmt.Errorf("create network: %w", err)
		}
		n, err := FindNetwork(ctx, name)
		if err == nil {
			err = n.Remove(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("create network: %w", err)
		}
		args := []string{"network", "create", "--subnet", n.subnet.String(), "--gateway", n.Gateway}
		if n.subnet.Bits() < dynamicBits {
			args = append(args, "--ip-range", netip.PrefixFrom(n.subnet.Addr(), dynamicBits).String())
		}
		for k, v := range labels {
			args = append(args, "--label", k+"="+v)
		}
		switch _, err := Run(ctx, append(args, name)...); {
		case err == nil:
			return FindNetwork(ctx, name)
		case !says(err, "overlaps"): // else somebody else took it meanwhile
			return nil, fmt.Errorf("create network: %w", err)
		}
	}
	return nil, errors.New("create network: others take every subnet that the engine chooses: try again")
}

// FindNetwork returns a network that exists.
func FindNetwork(ctx context.Context, name string) (*Network, error) {
	out, err := Run(ctx, "network", "inspect", name)
	if err != nil {
		return nil, err
	}
	var found []struct {
		Labels map[string]string
		IPAM   struct {
			Config []struct{ Subnet, Gateway string }
		}
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		return nil, fmt.Errorf("inspect network %s: %w", name, err)
	}
	for _, f := range found {
		for _, c := range f.IPAM.Config {
			subnet, err := netip.ParsePrefix(c.Subnet)
			if err != nil || !subnet.Addr().Is4() {
				continue
			}
			gateway := c.Gateway
			if gateway == "" {
				gateway = subnet.Addr().Next().String()
			}
			return &Network{Name: name, Gateway: strings.Split(gateway, "/")[0], Labels: f.Labels, subnet: subnet}, nil
		}
	}
	return nil, fmt.Errorf("network %s has no IPv4 subnet", name)
}

// Networks lists those that carry a label, whatever its value.
func Networks(ctx context.Context, label string) ([]*Network, error) {
	out, err := Run(ctx, "network", "ls", "--filter", "label="+label, "--format", "{{.Name}}")
	if err != nil {
		return nil, err
	}
	var all []*Network
	names := strings.Fields(out)
	slices.Sort(names)
	for _, name := range names {
		n, err := FindNetwork(ctx, name)
		if Gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// Addr is the nth address that the engine gives to nobody, from 0.
func (n *Network) Addr(i int) (string, error) {
	base := n.subnet.Addr().As4()
	at := netip.AddrFrom4([4]byte{base[0], base[1], base[2] + 1 + byte(i/200), byte(1 + i%200)})
	if !n.subnet.Contains(at) {
		return "", fmt.Errorf("network %s has %s: too small for fixed addresses", n.Name, n.subnet)
	}
	return at.String(), nil
}

// Fix gives a container that does not run its address for good: the engine would give it any.
func (n *Network) Fix(ctx context.Context, c Container, address string) error {
	if _, err := Run(ctx, "network", "disconnect", "-f", n.Name, string(c)); err != nil && !says(err, "is not connected") {
		return err
	}
	_, err := Run(ctx, "network", "connect", "--ip", address, n.Name, string(c))
	return err
}

// Remove removes the network; one that is gone is no error.
func (n *Network) Remove(ctx context.Context) error {
	_, err := Run(ctx, "network", "rm", n.Name)
	if Gone(err) {
		return nil
	}
	return err
}
