// Package loopback reserves loopback addresses, so that runs side by side do not collide and every node of a run has an
// address of its own.
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

// Block is a set of loopback addresses, 127.x.y.1 to 127.x.y.254, that nobody else who asks here uses. Since every node
// has an address of its own, all of them can use the well-known ports.
type Block struct {
	x, y byte
	lock net.Listener
}

// Reserve takes a free block. It is given back by Release or the end of this process.
func Reserve(ctx context.Context) (*Block, error) {
	for x := byte(10); x < 26; x++ {
		for y := byte(0); ; y++ {
			lock, err := new(net.ListenConfig).Listen(ctx, "unix", fmt.Sprintf("@weir-testbed/127.%d.%d.0", x, y))
			if err == nil {
				return &Block{x, y, lock}, nil
			}
			if !errors.Is(err, syscall.EADDRINUSE) {
				return nil, fmt.Errorf("reserve loopback addresses: %w", err)
			}
			if y == 255 {
				break
			}
		}
	}
	return nil, errors.New("reserve loopback addresses: all blocks from 127.10.0.0 to 127.25.255.0 are in use")
}

// Addr returns the nth address, counted from 1.
func (b *Block) Addr(n int) (string, error) {
	if n < 1 || n > Size {
		return "", fmt.Errorf("address %d of %s: a block has %d addresses", n, b, Size)
	}
	return fmt.Sprintf("127.%d.%d.%d", b.x, b.y, n), nil
}

func (b *Block) String() string { return fmt.Sprintf("127.%d.%d.0/24", b.x, b.y) }

// Release gives the block back.
func (b *Block) Release() { _ = b.lock.Close() }
