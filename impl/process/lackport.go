package process

import (
	"errors"
	"net"
	"syscall"
)

// Port opens a port that a hub can do without. If another process has it, it is told what the hub does not do
// meanwhile, and the listener is nil.
func (l *Lacks) Port(flag string, open func() (net.Listener, error), without string) (net.Listener, error) {
	port, err := open()
	if !errors.Is(err, syscall.EADDRINUSE) {
		return port, err
	}
	l.Add(flag, err, without, func() error {
		port, err := open()
		if err == nil {
			err = port.Close()
		}
		return err
	})
	return nil, nil //nolint:nilnil // there is none, and that is told
}
