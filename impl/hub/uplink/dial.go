package uplink

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/trust"
	"github.com/weir-edge/weir/impl/tunnel"
)

const (
	connectTimeout   = 10 * time.Second // for a TCP connection, and for each byte of a TLS handshake
	handshakeTimeout = 2 * time.Minute  // for all of a TLS handshake: over a thin link that many share, it takes its time
)

// connectError says that no connection came about, so nothing of the request was sent.
type connectError struct {
	server string
	err    error
}

func (e *connectError) Error() string { return fmt.Sprintf("connect to %s: %v", e.server, e.err) }
func (e *connectError) Unwrap() error { return e.err }

// Dials opens connections, as net.Dialer does.
type Dials interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Meter counts the bytes of connections, TLS records and handshakes included.
type Meter struct{ read, written, connections atomic.Int64 }

// BytesStatus is what a meter has counted.
type BytesStatus struct {
	Down        int64 `json:"down"`
	Up          int64 `json:"up"`
	Connections int64 `json:"connections"`
}

// Status is what was counted so far.
func (m *Meter) Status() BytesStatus {
	return BytesStatus{m.read.Load(), m.written.Load(), m.connections.Load()}
}

type meteredConn struct {
	net.Conn
	m       *Meter
	heard   atomic.Pointer[func()] // called when something arrives; nil before the peer has proved who it is
	silence atomic.Int64           // nothing at all comes for this long: the connection is dead; 0: it never is
	forget  atomic.Pointer[func()] // what guards it; nil: nothing
}

// NetConn is the connection below.
func (c *meteredConn) NetConn() net.Conn { return c.Conn }

func (c *meteredConn) Close() error {
	if forget := c.forget.Swap(nil); forget != nil {
		(*forget)()
	}
	return c.Conn.Close()
}

func (c *meteredConn) Read(p []byte) (int, error) {
	if d := time.Duration(c.silence.Load()); d > 0 {
		_ = c.Conn.SetReadDeadline(time.Now().Add(d))
	}
	n, err := c.Conn.Read(p)
	c.m.read.Add(int64(n))
	if heard := c.heard.Load(); heard != nil && n > 0 {
		(*heard)()
	}
	return n, err
}

func (c *meteredConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.m.written.Add(int64(n))
	return n, err
}

// errRaced says that another connection came about while this one waited for its turn: that one can be used.
var errRaced = errors.New("another connection was opened meanwhile")

// Dialer opens TLS connections of one kind.
type Dialer struct {
	Net   Dials
	TLS   *tls.Config // ServerName is filled in
	Meter *Meter
	// ServerName is what the peer's certificate names; "": its address.
	ServerName string
	// Proxy is through what an address is called; nil: through nothing.
	Proxy tunnel.Choice
	// Denied ends connections to those whose certificate is revoked; nil: nobody's is.
	Denied *trust.HeldDenylist
	// Verify judges who answers at an address, in the place of TLS; nil: TLS does.
	Verify func(host string, chain []*x509.Certificate) error
	heard  func(address string) func() // what to call when something arrives from an address; may be nil, and return nil
	broken func()                      // is told that nobody answers, or not as the server; may be nil
	// turns, if set, lets one dial at a time go on to each address. http.Transport dials for each request that finds no
	// connection, and a hub that starts has many at once; but HTTP/2 needs one connection, and each further handshake
	// costs kilobytes.
	turns *turns
	// silence, if set, is how long nothing at all may come over a connection. Pings see to it that something does.
	silence time.Duration
}

// settling is how long http.Transport may take to offer a new connection to requests that are about to dial.
const settling = 20 * time.Millisecond

// turns passes dials to an address one by one. A server that is dead does not delay those to another.
type turns struct {
	mu sync.Mutex
	to map[string]*turn
}

type turn struct {
	token chan struct{} // holds one while nobody dials
	// Only a dial that has the token looks at these.
	last   time.Time // when a connection came about
	failed time.Time // when the last attempt began that failed
	err    error     // of that
}

func newTurns() *turns { return &turns{to: map[string]*turn{}} }

func (t *turns) at(address string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	x := t.to[address]
	if x == nil {
		x = &turn{token: make(chan struct{}, 1)}
		x.token <- struct{}{}
		t.to[address] = x
	}
	return x
}

func (d *Dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if d.turns == nil {
		return d.Connect(ctx, network, address)
	}
	asked := time.Now()
	turn := d.turns.at(address)
	select {
	case <-turn.token:
	case <-ctx.Done():
		return nil, &connectError{address, ctx.Err()}
	}
	defer func() { turn.token <- struct{}{} }()
	switch {
	case turn.last.After(asked) || time.Since(turn.last) < settling:
		return nil, errRaced
	case turn.failed.After(asked): // all of an attempt: where nobody answers, many would each wait for one of their own
		return nil, turn.err
	}
	began := time.Now()
	conn, err := d.Connect(ctx, network, address)
	switch {
	case err == nil:
		turn.last = time.Now()
	case ctx.Err() == nil:
		turn.failed, turn.err = began, err
	}
	return conn, err
}

// Connect opens a connection, whoever else does.
func (d *Dialer) Connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := d.connect(ctx, network, address)
	if err != nil && ctx.Err() == nil && d.broken != nil {
		d.broken()
	}
	return conn, err
}

func (d *Dialer) connect(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &connectError{address, err}
	}
	metered, through, err := d.open(ctx, network, address)
	if err != nil {
		return nil, &connectError{address, err}
	}
	raw := metered.Conn
	config := d.TLS.Clone()
	host = cmp.Or(d.ServerName, host)
	config.ServerName = host
	if d.Verify != nil {
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(s tls.ConnectionState) error { return d.Verify(host, s.PeerCertificates) }
	}
	conn := tls.Client(through, config)
	shaking, cancel := context.WithTimeout(ctx, handshakeTimeout)
	err = conn.HandshakeContext(shaking)
	cancel()
	if err != nil {
		_ = raw.Close()
		return nil, &connectError{address, err}
	}
	peer := conn.ConnectionState().PeerCertificates[0]
	forget := d.Denied.Guard(peer, func(error) { _ = raw.Close() })
	metered.forget.Store(&forget)
	if err := d.Denied.Refuse(peer); err != nil {
		_ = conn.Close()
		return nil, &connectError{address, err}
	}
	metered.silence.Store(0)
	_ = raw.SetReadDeadline(time.Time{})
	if conn.ConnectionState().NegotiatedProtocol == "h2" { // over HTTP/1.1 nobody pings
		metered.silence.Store(int64(d.silence))
	}
	if d.heard != nil {
		if heard := d.heard(address); heard != nil {
			metered.heard.Store(&heard)
		}
	}
	return conn, nil
}

// open opens what TLS then runs over: a connection, or what a proxy gives over one. All bytes of it are counted.
func (d *Dialer) open(ctx context.Context, network, address string) (metered *meteredConn, through net.Conn,
	err error) {
	at := address
	var proxy *url.URL
	if d.Proxy != nil {
		if proxy, err = d.Proxy(address); err != nil {
			return nil, nil, err
		}
		if proxy != nil {
			at = tunnel.Address(proxy)
		}
	}
	dialing, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := d.Net.DialContext(dialing, network, at)
	if err != nil {
		return nil, nil, err
	}
	d.Meter.connections.Add(1)
	metered = &meteredConn{Conn: raw, m: d.Meter}
	metered.silence.Store(int64(connectTimeout))
	if proxy == nil {
		return metered, metered, nil
	}
	opening, cancel := context.WithTimeout(ctx, handshakeTimeout) // the proxy connects meanwhile
	defer cancel()
	through, err = tunnel.Open(opening, metered, proxy, address)
	return metered, through, err
}

// Sessions resumes TLS sessions, which saves the certificates of a handshake. A session carries the client certificate
// it began with, so one cache serves connections with one identity only.
type Sessions struct {
	mu    sync.Mutex
	cache tls.ClientSessionCache
}

// NewSessions makes a cache that is empty.
func NewSessions() *Sessions { return &Sessions{cache: tls.NewLRUClientSessionCache(16)} }

// Get implements tls.ClientSessionCache.
func (s *Sessions) Get(key string) (*tls.ClientSessionState, bool) { return s.current().Get(key) }

// Put implements tls.ClientSessionCache.
func (s *Sessions) Put(key string, state *tls.ClientSessionState) { s.current().Put(key, state) }

func (s *Sessions) current() tls.ClientSessionCache {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cache
}

// Forget makes the next handshakes full ones, with the certificate of then.
func (s *Sessions) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = tls.NewLRUClientSessionCache(16)
}
