package runtime

import (
	"context"
	"net"
	"net/http"

	"github.com/weir-edge/weir/sim/parts"
)

// ground is what the machines of a site stand on.
type ground interface {
	// near is where the near ends of a node's links listen, "host:0".
	near(nodeAddress string) string
	// hub and coordinator prepare a part for what is said as if it were a process of this machine.
	hub(l parts.Launch, c parts.HubConfig) (Part, error)
	coordinator(l parts.Launch, c parts.CoordinatorConfig, viewer http.RoundTripper) (Part, error)
	// machine prepares the kubelet and the containers of node i of a pool, from 0.
	machine(ctx context.Context, x *localPool, i int, name, address string) error
}

// addresses of a pool: those of its nodes from 1, those of its coordinators from coordinatorAddress.
type addresses interface {
	Addr(n int) (string, error)
}

// here is this machine: every node is a loopback address.
type here struct{}

func (here) near(address string) string { return net.JoinHostPort(address, "0") }

func (here) hub(l parts.Launch, c parts.HubConfig) (Part, error) { return parts.NewHub(l, c) }

func (here) coordinator(l parts.Launch, c parts.CoordinatorConfig, viewer http.RoundTripper) (Part, error) {
	return parts.NewCoordinator(l, c, viewer)
}

func (here) machine(ctx context.Context, x *localPool, i int, name, address string) error {
	return x.addMachine(ctx, i, name, address)
}
