package reverse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
)

// Place is where a host is: in a pool, as one of a node if Node is not "". Without a pool it is in none.
type Place struct {
	Pool, Node string
	Addr       netip.Addr
}

// Dial opens a connection to an address, "host:port", through the leader of its pool. ctx bounds the opening, and
// nothing after it. Errors are of type *Error.
func (x *Ways) Dial(ctx context.Context, in Place, address string) (net.Conn, error) {
	c, err := x.dial(ctx, in, address)
	if err != nil {
		x.failed.Add(1)
		return nil, err
	}
	x.opened.Add(1)
	return c, nil
}

func (x *Ways) dial(ctx context.Context, in Place, address string) (*stream, *Error) {
	pool := in.Pool
	switch x.slots.Enter(pool) {
	case "each":
		return nil, &Error{Busy, pool, address, fmt.Sprintf("it has %d connections, the most that one pool may have",
			x.c.PerPool)}
	case "sum":
		return nil, &Error{Full, pool, address, fmt.Sprintf("the gate has %d connections into pools, the most that it may",
			x.c.Sum)}
	}
	c, err := x.enter(ctx, in, address)
	if err != nil {
		x.slots.Leave(pool)
	}
	return c, err
}

// enter opens a connection for which there is a slot. The connection gives the slot back.
func (x *Ways) enter(ctx context.Context, in Place, address string) (*stream, *Error) {
	pool := in.Pool
	dialing, cancel := context.WithTimeout(ctx, x.c.DialWithin)
	defer cancel()
	w, err := x.await(dialing, pool, address)
	if err != nil {
		return nil, err
	}
	s := newStream(x, w, address)
	stop := context.AfterFunc(dialing, s.cancel)
	defer stop()
	req := &http.Request{
		Method: http.MethodConnect, URL: &url.URL{Scheme: "http", Host: address}, Host: address,
		Header: http.Header{}, Body: body{s},
	}
	if in.Node != "" {
		req.Header.Set(nodeHeader, in.Node)
	}
	resp, fail := w.conn.RoundTrip(req.WithContext(s.ctx))
	if fail == nil && !stop() {
		fail = dialing.Err()
		_ = resp.Body.Close()
	}
	switch {
	case fail != nil:
		err = w.failed(dialing, fail, address)
	case resp.StatusCode != http.StatusOK:
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxText))
		_ = resp.Body.Close()
		err = &Error{kindOf(resp.StatusCode), pool, address, clean(string(text))}
	default:
		go s.receive(resp)
		return s, nil
	}
	s.drop()
	x.leave(w)
	return nil, err
}

// failed says why nothing was answered.
func (w *way) failed(dialing context.Context, err error, address string) *Error {
	switch {
	case errors.Is(dialing.Err(), context.DeadlineExceeded):
		return &Error{Late, w.pool, address, "the hub that leads has not answered in time"}
	case dialing.Err() != nil:
		return &Error{Broken, w.pool, address, "the caller has gone"}
	case w.conn.Err() != nil:
		return &Error{Lost, w.pool, address, "the connection of its leader on node " + w.node + " has ended"}
	}
	return &Error{Broken, w.pool, address, err.Error()}
}
