package reverse

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// guarded dials what check allows. check is asked about each address that is really dialed, so a name may lead nowhere
// else, whatever a resolver says.
func guarded(check func(netip.AddrPort) error) func(ctx context.Context, address string) (net.Conn, error) {
	d := &net.Dialer{
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return check(a)
		},
	}
	return func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
}

// dialError says why an address could not be dialed.
func dialError(err error, pool, address string) *Error {
	var is *Error
	if errors.As(err, &is) {
		e := *is
		e.Pool, e.Address = pool, address
		return &e
	}
	kind := Unreachable
	var timeout interface{ Timeout() bool }
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout() {
		kind = Late
	}
	return &Error{Kind: kind, Pool: pool, Address: address, Why: err.Error()}
}

// closeWrite tells the other end that nothing more comes. A connection that cannot is closed.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// abort ends a connection so that the other end sees an error, and not an end.
func abort(c net.Conn) {
	if s, ok := c.(interface{ abort() }); ok {
		s.abort()
		return
	}
	to := below(c) // TLS would say that it is a good end
	if tcp, ok := to.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	_ = to.Close()
}
