package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"github.com/weir-edge/weir/impl/cli"
)

func listen(set *settings) (net.Listener, error) {
	address := net.JoinHostPort(set.BindAddress, strconv.Itoa(set.SecurePort))
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: %w: stop the other process, or choose another --secure-port", address,
			syscall.EADDRINUSE)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, cli.Usage("--secure-port", address, "an IP address of this machine")
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}
