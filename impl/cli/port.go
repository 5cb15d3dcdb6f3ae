package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// OpenPort opens the TCP port that --secure-port names, at an IP address. Its error says what to do; elsewhere is the
// one of an address that is not of this machine.
func OpenPort(host string, port int, elsewhere error) (net.Listener, error) {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: %w: stop the other process, or choose another --secure-port", address,
			syscall.EADDRINUSE)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, elsewhere
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}
