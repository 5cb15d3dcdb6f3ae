package bubble

import (
	"context"
	"net"
	"strconv"
	"sync"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/coordinator/inmemory"
	"github.com/weir-edge/weir/impl/lease"
	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/sim/testca"
)

// NewCoordinator serves at "coordinator:10270" until stop is called. Each one has lost its disk.
func NewCoordinator(n *Network, ca *testca.Authority, life int) (c *inmemory.Coordinator, stop func(), err error) {
	r, err := newRelay()
	if err != nil {
		return nil, nil, err
	}
	from := n.Host("coordinator")
	cert, err := certificate(from, ca)
	if err != nil {
		return nil, nil, err
	}
	c, err = inmemory.New(inmemory.Config{
		Pool: "pool", Relays: []*relay.Relay{r}, Leases: lease.New(strconv.Itoa(life), 10), Clock: clock.RealClock{},
		Line: inmemory.Lines(cert, func(ctx context.Context, _, address string) (net.Conn, error) {
			return from.DialContext(ctx, "tcp", address)
		}),
	})
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = c.Run(ctx) })
	running.Go(func() { _ = r.Run(ctx) })
	end, err := serve(from, "10270", ca, c)
	return c, func() {
		cancel()
		running.Wait()
		end()
	}, err
}
