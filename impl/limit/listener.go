package limit

import (
	"container/list"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Rank is what a connection has shown of its caller. Of those that are too many, the lowest rank goes first.
type Rank int

// Ranks, lowest first. A connection of rank Kept counts for no bound.
const (
	Unknown Rank = iota // nothing
	Proven              // a credential that is valid
	Kept                // whom the listener is there for
)

// Listener bounds the connections of another listener: Each of one remote address, Sum of all. A new connection is
// never refused, else who holds all of them would keep everybody out. Beyond a bound the listener closes another one
// instead: of the same address, or of the address that has most; of the lowest rank there, and the oldest of these.
type Listener struct {
	net.Listener
	Sum, Each int
	Closed    func() // a connection was closed for a newer one; may be nil

	mu   sync.Mutex
	from map[string]*group
	all  int
}

// group are the connections of one address that count, by rank, oldest first.
type group struct {
	conns [Kept]list.List
	n     int
}

// Conn is a connection that a Listener accepted.
type Conn struct {
	net.Conn
	l    *Listener
	addr string
	rank Rank
	at   *list.Element // nil: it is no longer valid

	owes   atomic.Int64  // how long the next Read waits
	closed chan struct{} // by Close
	once   sync.Once
}

// maxPause is the longest that one Read waits.
const maxPause = time.Second

// Slow makes the next Read wait, unless the connection is of rank Kept: whoever asks for what is refused has to ask
// more slowly, and what it has sent meanwhile waits at its own end.
func (c *Conn) Slow(d time.Duration) {
	c.l.mu.Lock()
	kept := c.rank == Kept
	c.l.mu.Unlock()
	if !kept {
		c.owes.Add(int64(d))
	}
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if d := time.Duration(c.owes.Swap(0)); d > 0 {
		timer := time.NewTimer(min(d, maxPause))
		select {
		case <-timer.C:
		case <-c.closed:
		}
		timer.Stop()
	}
	return c.Conn.Read(p)
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &Conn{Conn: c, l: l, addr: Host(c.RemoteAddr()), closed: make(chan struct{})}
	if old := l.add(conn); old != nil {
		_ = old.Close()
		if l.Closed != nil {
			l.Closed()
		}
	}
	return conn, nil
}

// Host is the address without the port.
func Host(a net.Addr) string {
	if a == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String()
	}
	return host
}

func (l *Listener) add(c *Conn) (old *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.from == nil {
		l.from = map[string]*group{}
	}
	if g := l.from[c.addr]; g != nil && g.n >= l.Each {
		old = l.oldest(g)
	} else if l.all >= l.Sum {
		var most *group
		for _, g := range l.from {
			if most == nil || g.n > most.n {
				most = g
			}
		}
		old = l.oldest(most)
	}
	if old != nil {
		l.remove(old)
	}
	l.put(c)
	return old
}

func (l *Listener) oldest(g *group) *Conn {
	for i := range g.conns {
		if e := g.conns[i].Front(); e != nil {
			return e.Value.(*Conn)
		}
	}
	return nil
}

// put counts a connection; l.mu is held.
func (l *Listener) put(c *Conn) {
	g := l.from[c.addr]
	if g == nil {
		g = &group{}
		l.from[c.addr] = g
	}
	c.at = g.conns[c.rank].PushBack(c)
	g.n++
	l.all++
}

// remove counts a connection no more; l.mu is held.
func (l *Listener) remove(c *Conn) {
	if c.at == nil {
		return
	}
	g := l.from[c.addr]
	g.conns[c.rank].Remove(c.at)
	c.at = nil
	l.all--
	if g.n--; g.n == 0 {
		delete(l.from, c.addr)
	}
}

// Open is how many connections count now.
func (l *Listener) Open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all
}

// Prove says what a connection has shown. A rank never falls.
func (c *Conn) Prove(r Rank) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	if r <= c.rank || c.at == nil {
		return
	}
	c.l.remove(c)
	c.rank = r
	if r < Kept {
		c.l.put(c)
	}
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.l.mu.Lock()
	c.l.remove(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// ConnOf finds the Conn below others that have a NetConn method, as tls.Conn has; nil if there is none.
func ConnOf(c net.Conn) *Conn {
	for {
		if own, ok := c.(*Conn); ok {
			return own
		}
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = above.NetConn()
	}
}
