package bubble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Network is a network in memory. What a host that is cut off sends or gets waits until it is joined again, as with
// TCP.
type Network struct {
	mu        sync.Mutex
	listeners map[string]*listener
	conns     map[*conn]struct{}
	cut       map[[2]string]bool // pairs of hosts
	dead      map[string]bool
	ports     int
}

// NewNetwork returns a network without hosts.
func NewNetwork() *Network {
	return &Network{
		listeners: map[string]*listener{}, conns: map[*conn]struct{}{}, cut: map[[2]string]bool{}, dead: map[string]bool{},
		ports: 10000,
	}
}

// Host is one machine's view of a network; it implements hub.Net. Addresses that it listens on get its name.
type Host struct {
	n    *Network
	name string
}

// Host returns the view of a machine.
func (n *Network) Host(name string) Host { return Host{n, name} }

// Cut separates two hosts, or joins them again.
func (n *Network) Cut(a, b string, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut[[2]string{a, b}], n.cut[[2]string{b, a}] = cut, cut
	for c := range n.conns {
		c.in.poke()
		c.out.poke()
	}
}

// Kill is the sudden death of all processes of a host: their connections break, and nothing goes to or comes from it
// any more.
func (n *Network) Kill(host string) {
	n.mu.Lock()
	n.dead[host] = true
	n.mu.Unlock()
	n.Reset(host)
}

// Reset breaks all connections of a host.
func (n *Network) Reset(host string) {
	n.mu.Lock()
	var conns []*conn
	for c := range n.conns {
		if c.local == host || c.remote == host {
			conns = append(conns, c)
		}
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.in.fail(syscall.ECONNRESET)
		c.out.fail(syscall.ECONNRESET)
	}
}

// separated reports whether two hosts do not reach each other.
func (n *Network) separated(a, b string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cut[[2]string{a, b}]
}

// Listen opens a port of the host. Port 0 is any.
func (h Host) Listen(_ context.Context, _, address string) (net.Listener, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if port == "0" {
		h.n.ports++
		port = fmt.Sprint(h.n.ports)
	}
	l := &listener{
		n: h.n, at: addr(net.JoinHostPort(h.name, port)), host: h.name, accept: make(chan *conn, 64),
		closed: make(chan struct{}),
	}
	if h.n.listeners[string(l.at)] != nil {
		return nil, syscall.EADDRINUSE
	}
	h.n.listeners[string(l.at)] = l
	return l, nil
}

// DialContext opens a connection from the host.
func (h Host) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	remote, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	for h.n.separated(h.name, remote) {
		t := time.NewTimer(100 * time.Millisecond) // the SYN is sent again
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, ctx.Err()
		}
	}
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	l := h.n.listeners[address]
	if l == nil || h.n.dead[h.name] || h.n.dead[remote] {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: addr(address), Err: syscall.ECONNREFUSED}
	}
	blocked := func() bool { return h.n.separated(h.name, remote) }
	there, back := newPipe(blocked), newPipe(blocked)
	h.n.ports++
	from := addr(net.JoinHostPort(h.name, fmt.Sprint(h.n.ports)))
	ours := &conn{n: h.n, in: back, out: there, at: from, to: addr(address), local: h.name, remote: remote}
	theirs := &conn{n: h.n, in: there, out: back, at: addr(address), to: from, local: remote, remote: h.name}
	select {
	case l.accept <- theirs:
	default:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: addr(address), Err: syscall.ECONNREFUSED}
	}
	h.n.conns[ours], h.n.conns[theirs] = struct{}{}, struct{}{}
	return ours, nil
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

type listener struct {
	n      *Network
	at     addr
	host   string
	accept chan *conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Addr() net.Addr { return l.at }

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.n.mu.Lock()
		defer l.n.mu.Unlock()
		delete(l.n.listeners, string(l.at))
	})
	return nil
}

// conn is one end of a connection.
type conn struct {
	n             *Network
	in, out       *pipe
	at, to        addr
	local, remote string
}

func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }
func (c *conn) LocalAddr() net.Addr         { return c.at }
func (c *conn) RemoteAddr() net.Addr        { return c.to }

func (c *conn) Close() error {
	c.n.mu.Lock()
	delete(c.n.conns, c)
	c.n.mu.Unlock()
	c.out.end()
	c.in.fail(net.ErrClosed)
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	c.in.limit(t)
	return nil
}
func (c *conn) SetReadDeadline(t time.Time) error { return c.SetDeadline(t) }
func (c *conn) SetWriteDeadline(time.Time) error  { return nil } // a write never waits

// pipe is one direction of a connection.
type pipe struct {
	blocked func() bool

	mu       sync.Mutex
	wake     chan struct{} // closed and replaced when a reader should look again
	buf      []byte
	ended    bool
	err      error
	deadline time.Time
}

func newPipe(blocked func() bool) *pipe { return &pipe{blocked: blocked, wake: make(chan struct{})} }

// change changes the pipe and lets a reader look.
func (p *pipe) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	close(p.wake)
	p.wake = make(chan struct{})
}

func (p *pipe) poke()             { p.change(func() {}) }
func (p *pipe) end()              { p.change(func() { p.ended = true }) }
func (p *pipe) limit(t time.Time) { p.change(func() { p.deadline = t }) }

func (p *pipe) fail(err error) {
	p.change(func() {
		if p.err == nil {
			p.err = err
		}
	})
}

func (p *pipe) write(b []byte) (n int, err error) {
	p.change(func() {
		switch {
		case p.err != nil:
			err = syscall.EPIPE
		default:
			p.buf = append(p.buf, b...)
			n = len(b)
		}
	})
	return n, err
}

func (p *pipe) read(b []byte) (int, error) {
	for {
		blocked := p.blocked()
		p.mu.Lock()
		wake, deadline := p.wake, p.deadline
		late := !deadline.IsZero() && !time.Now().Before(deadline)
		switch {
		case p.err != nil && (!blocked || errors.Is(p.err, net.ErrClosed)):
			defer p.mu.Unlock()
			return 0, p.err
		case late:
			p.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		case len(p.buf) > 0 && !blocked:
			n := copy(b, p.buf)
			p.buf = p.buf[n:]
			p.mu.Unlock()
			return n, nil
		case p.ended && !blocked:
			p.mu.Unlock()
			return 0, io.EOF
		}
		p.mu.Unlock()
		if deadline.IsZero() {
			<-wake
			continue
		}
		t := time.NewTimer(time.Until(deadline))
		select {
		case <-wake:
		case <-t.C:
		}
		t.Stop()
	}
}
