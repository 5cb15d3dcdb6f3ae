package authz

import (
	"container/list"
	"net"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/weir-edge/weir/impl/limit"
	"github.com/weir-edge/weir/impl/trust"
)

// Callers bounds what the connections of strangers cost: the oldest of them ends when there are too many. It is the
// net.Listener of the API.
type Callers struct {
	net.Listener
	denied *trust.HeldDenylist

	mu        sync.Mutex
	strangers *list.List // of *connection, oldest first
	open      map[string]*connection
}

// connection is one connection to the API.
type connection struct {
	net.Conn
	callers  *Callers
	stranger *list.Element // nil: no longer, or closed
	forget   func()        // what guards it; nil: nothing does yet, or it is closed
}

// Listen is a listener in the place of another one.
func Listen(l net.Listener, denied *trust.HeldDenylist) *Callers {
	return &Callers{Listener: l, denied: denied, strangers: list.New(), open: map[string]*connection{}}
}

// Accept implements net.Listener.
func (c *Callers) Accept() (net.Conn, error) {
	raw, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: raw, callers: c}
	c.mu.Lock()
	conn.stranger = c.strangers.PushBack(conn)
	c.open[raw.RemoteAddr().String()] = conn
	var oldest *connection
	if c.strangers.Len() > limit.MaxStrangers {
		oldest = c.strangers.Front().Value.(*connection)
		c.known(oldest)
	}
	c.mu.Unlock()
	if oldest != nil {
		_ = oldest.Conn.Close()
	}
	return conn, nil
}

// known takes a connection from the strangers; c.mu is held.
func (c *Callers) known(conn *connection) {
	if conn.stranger != nil {
		c.strangers.Remove(conn.stranger)
		conn.stranger = nil
	}
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.callers.mu.Lock()
	c.callers.known(c)
	if at := c.RemoteAddr().String(); c.callers.open[at] == c {
		delete(c.callers.open, at)
	}
	forget := c.forget
	c.forget = nil
	c.callers.mu.Unlock()
	if forget != nil {
		forget()
	}
	return c.Conn.Close()
}

// Proves notes that somebody of the pool asks something over a connection. It ends, with all that is open over it, when
// the certificate is revoked.
func (c *Callers) Proves(req *http.Request) {
	if u, ok := genericrequest.UserFrom(req.Context()); !ok || u.GetName() == user.Anonymous {
		return
	}
	c.mu.Lock()
	conn := c.open[req.RemoteAddr]
	if conn == nil || conn.forget != nil || req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		c.mu.Unlock()
		return
	}
	c.known(conn)
	conn.forget = func() {}
	c.mu.Unlock()
	forget := c.denied.Guard(req.TLS.PeerCertificates[0], func(error) { _ = conn.Close() })
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[req.RemoteAddr] != conn { // closed meanwhile
		forget()
		return
	}
	conn.forget = forget
}
