// Package loopback reserves loopback addresses, so that runs side by side do not collide and every node of a run has an
// address of its own.
//
// kube-apiserver takes no loopback address for an endpoint. ReserveNodes has addresses for Nodes that are to be one: of
// the range for benchmarks, 198.18.0.0/15 (RFC 2544), which a route makes this machine's own and which no packet
// leaves. A user that may not add that route cannot have them.
//
// It keeps no files and starts no goroutine: a reservation is an abstract unix socket, which lives exactly as long as
// its process, however that ends, and in the same network namespace as the addresses.
package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Size is the number of addresses of a Block.
const Size = 254

// Block is a set of loopback addresses, 127.x.y.1 to 127.x.y.254, or of such for Nodes, that nobody else who asks here
// uses. Since every node has an address of its own, all of them can use the well-known ports.
type Block struct {
	first, x, y byte
	lock        net.Listener
}

// Reserve takes a free block. It is given back by Release or the end of this process.
func Reserve(ctx context.Context) (*Block, error) { return reserve(ctx, 127, 10, 25) }

// ReserveNodes takes a free block of addresses that kube-apiserver takes for those of Nodes.
func ReserveNodes(ctx context.Context) (*Block, error) {
	b, err := reserve(ctx, nodesFirst, nodesFrom, nodesTo)
	if err != nil {
		return nil, err
	}
	if err := routeNodes(ctx, b); err != nil {
		b.Release()
		return nil, err
	}
	return b, nil
}

func reserve(ctx context.Context, first, from, to byte) (*Block, error) {
	for x := from; x <= to; x++ {
		for y := byte(0); ; y++ {
			lock, err := new(net.ListenConfig).Listen(ctx, "unix", fmt.Sprintf("@weir-testbed/%d.%d.%d.0", first, x, y))
			if err == nil {
				return &Block{first, x, y, lock}, nil
			}
			if !errors.Is(err, syscall.EADDRINUSE) {
				return nil, fmt.Errorf("reserve loopback addresses: %w", err)
			}
			if y == 255 {
				break
			}
		}
	}
	return nil, fmt.Errorf("reserve loopback addresses: all blocks from %d.%d.0.0 to %d.%d.255.0 are in use", first, from,
		first, to)
}

// Addr returns the nth address, counted from 1.
func (b *Block) Addr(n int) (string, error) {
	if n < 1 || n > Size {
		return "", fmt.Errorf("address %d of %s: a block has %d addresses", n, b, Size)
	}
	return fmt.Sprintf("%d.%d.%d.%d", b.first, b.x, b.y, n), nil
}

func (b *Block) String() string { return fmt.Sprintf("%d.%d.%d.0/24", b.first, b.x, b.y) }

// Release gives the block back.
func (b *Block) Release() { _ = b.lock.Close() }
