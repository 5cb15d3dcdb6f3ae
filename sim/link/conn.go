package link

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dialTimeout is for the last, local step to the upstream; the link's own delay is not part of it.
const dialTimeout = 5 * time.Second

// conn is a connection across the link.
type conn struct {
	id     int64
	proxy  *Proxy
	opened time.Time
	halves [2]*half // by Direction.index
	// dead is closed when nothing more is to be delivered; both sockets are closed soon after.
	dead chan struct{}
	// severed is closed by sever when a toxic ended a direction, though its sender did not.
	severed chan struct{}
	sever   func()
}

// half is one direction of a connection: what from sends is delivered to to.
type half struct {
	conn     *conn
	dir      Direction
	from, to *net.TCPConn
	flow     flow
	cut      bool // the link was, when it was last looked at
	left     bool // to was closed before the link was cut

	mu       sync.Mutex
	over     bool          // from was closed or reset
	aborted  bool          // from was reset, not closed
	finished chan struct{} // toxiproxy is done with this direction
	refused  chan struct{} // to does not take any more
	refuse   func()        // closes refused
}

// serve carries one connection until both ends have closed it, one has reset it, or the pool is closed.
func (x *Proxy) serve(client *net.TCPConn) {
	defer client.Close()
	if !x.handshake(client) {
		_ = reset(client)
		return
	}
	upstream, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(x.pool.ctx, "tcp", x.upstream)
	if err != nil {
		if x.pool.ctx.Err() == nil {
			x.pool.log.Debug("the far end of the link refuses", "node", x.node, "class", x.class, "err", err)
		}
		_ = reset(client)
		return
	}
	defer upstream.Close()
	server, ok := upstream.(*net.TCPConn)
	if !ok {
		return
	}
	now := x.pool.clock.Now()
	severed := make(chan struct{})
	c := &conn{
		proxy: x, dead: make(chan struct{}), opened: now, id: x.pool.ledger.open(now, x.node, x.class, x.upstream),
		severed: severed, sever: sync.OnceFunc(func() { close(severed) }),
	}
	c.halves[Up.index()] = c.newHalf(Up, client, server)
	c.halves[Down.index()] = c.newHalf(Down, server, client)
	x.startLinks(c)
	c.watch()
	close(c.dead)
	_, _ = client.Close(), server.Close()
	for _, h := range c.halves {
		<-h.finished
	}
	x.pool.ledger.close(x.pool.clock.Now(), c.id)
}

// watch waits until the connection is over.
func (c *conn) watch() {
	up, down := c.halves[Up.index()], c.halves[Down.index()]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-up.finished
		<-down.finished
	}()
	for waits := true; waits; {
		doomed, changed, stop := c.doomed()
		waits = false
		select {
		case <-c.severed: // both sockets are closed, as toxiproxy would
			stop()
			return
		case <-ended:
			stop()
			return
		case <-up.refused:
			c.carryReset(Down)
		case <-down.refused:
			c.carryReset(Up)
		case <-doomed:
		case <-changed:
			waits = true
		case <-c.proxy.pool.ctx.Done():
		}
		stop()
	}
	for _, h := range c.halves {
		_ = reset(h.to)
	}
}

// doomed sends when a toxic resets the connection.
func (c *conn) doomed() (<-chan time.Time, <-chan struct{}, func() bool) {
	pool := c.proxy.pool
	at, changed := pool.doom(c.proxy.node, c.opened)
	if at.IsZero() {
		return nil, changed, func() bool { return true }
	}
	t := pool.clock.NewTimer(at.Sub(pool.clock.Now()))
	return t.C(), changed, t.Stop
}

// carryReset waits until the news that one end does not take any more has crossed the link.
func (c *conn) carryReset(dir Direction) {
	c.proxy.pool.cross(c.proxy.node, dir, func() bool { return false })
}

// handshake waits as long as the opening of a connection takes: a round trip on an open link. It returns false when
// the connection does not come about: the pool is closed, or the client gave up while the link was cut.
func (x *Proxy) handshake(client *net.TCPConn) bool {
	return x.pool.cross(x.node, Both, func() bool { return abandoned(client) })
}

// cross waits until the link is open in the given directions and then for their delays: a round trip for both. When
// the link is cut, now or meanwhile, it asks now and then whether the wait is given up. It returns false when that is
// so or the pool is closed.
func (p *Pool) cross(node string, dir Direction, givenUp func() bool) bool {
	const ask = time.Second
	wasCut := false
	for crossed := false; ; {
		var delay time.Duration
		var changed <-chan struct{}
		open := true
		for _, d := range []Direction{Up, Down} {
			if dir&d != 0 {
				var c conditions
				c, changed = p.conditions(node, d)
				open, delay = open && c.open, delay+c.delay
			}
		}
		switch {
		case !open:
			wasCut, crossed, delay = true, false, ask
			if givenUp() {
				return false
			}
		case crossed || delay == 0:
			return p.ctx.Err() == nil && (!wasCut || !givenUp())
		default:
			crossed, changed = true, nil
		}
		timer := p.clock.NewTimer(delay)
		select {
		case <-timer.C():
		case <-changed:
		case <-p.ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

func (c *conn) newHalf(dir Direction, from, to *net.TCPConn) *half {
	refused := make(chan struct{})
	return &half{
		conn: c, dir: dir, from: from, to: to,
		flow:     flow{wire: c.proxy.pool.wires[dir.index()]},
		finished: make(chan struct{}), refused: refused, refuse: sync.OnceFunc(func() { close(refused) }),
	}
}

func (h *half) source() io.Reader    { return source{h} }
func (h *half) sink() io.WriteCloser { return sink{h} }

// source is the sending socket as toxiproxy reads it.
type source struct{ *half }

func (s source) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	if err != nil {
		s.mu.Lock()
		s.over, s.aborted = true, !errors.Is(err, io.EOF)
		s.mu.Unlock()
	}
	return n, err
}

// sink is the receiving socket as toxiproxy writes it. Close is called once, at the end of this direction; the
// other one may go on.
type sink struct{ *half }

// Write never fails: toxics before it would wait for ever for a reader. What to does not take is lost.
func (s sink) Write(b []byte) (int, error) {
	if _, err := s.to.Write(b); err != nil {
		s.refuse()
	}
	return len(b), nil
}

func (s sink) Close() error {
	defer close(s.finished)
	s.mu.Lock()
	over, aborted := s.over, s.aborted
	s.mu.Unlock()
	if !over {
		s.conn.sever()
	}
	select {
	case <-s.conn.severed:
		return nil
	default:
	}
	if aborted {
		return reset(s.to)
	}
	return s.to.CloseWrite()
}

// reset closes a socket so that its peer learns it by a reset.
func reset(c *net.TCPConn) error {
	_ = c.SetLinger(0)
	return c.Close()
}

// abandoned reports whether the client has closed its socket, also when bytes from it are still unread: such a
// connection never came about on a real link.
func abandoned(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	var info *unix.TCPInfo
	var infoErr error
	if err := raw.Control(func(fd uintptr) {
		info, infoErr = unix.GetsockoptTCPInfo(int(fd), syscall.IPPROTO_TCP, unix.TCP_INFO)
	}); err != nil || infoErr != nil {
		return true
	}
	const established = 1 // TCP_ESTABLISHED, linux/include/net/tcp_states.h
	return info.State != established
}
