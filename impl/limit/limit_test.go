package limit

import (
	"fmt"
	"net"
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	now := time.Unix(1000, 0)
	r := &Rate{Every: time.Second / 10, Burst: 3, Keys: 2}
	granted := func(key string, n int) (got int) {
		for range n {
			if r.Take(key, now) == 0 {
				got++
			}
		}
		return got
	}
	if got := granted("a", 10); got != 3 {
		t.Errorf("%d at once, want the burst of 3", got)
	}
	if wait := r.Take("a", now); wait != time.Second/10 {
		t.Errorf("told to wait %s", wait)
	}
	if wait := r.Wait("b", now); wait != 0 || len(r.full) != 1 {
		t.Error("who asks for the time to wait has taken something")
	}
	if got := granted("b", 10); got != 3 {
		t.Errorf("%d of another caller", got)
	}
	// Both keys are in use: all others share one bucket, however many they are.
	shared := 0
	for i := range 1000 {
		shared += granted(fmt.Sprint("x", i), 1)
	}
	if shared != 3 || len(r.full) != 2 {
		t.Errorf("%d of a thousand more callers, %d keys", shared, len(r.full))
	}
	now = now.Add(time.Second / 5)
	if got := granted("a", 10); got != 2 {
		t.Errorf("%d after 0.2 s, want 2", got)
	}
	now = now.Add(time.Hour)
	if got := granted("c", 10); got != 3 || len(r.full) != 1 {
		t.Errorf("%d of a new caller, %d keys: those who rest are forgotten", got, len(r.full))
	}
	one := &Rate{Every: time.Second, Burst: 2}
	if one.Take("a", now) != 0 || one.Take("b", now) != 0 || one.Take("c", now) == 0 {
		t.Error("without keys there is one bucket")
	}
}

func TestSlots(t *testing.T) {
	s := &Slots{Sum: 3, Each: 2}
	for i, step := range []struct{ key, full string }{
		{"a", ""}, {"a", ""}, {"a", "each"}, {"b", ""}, {"b", "sum"}, {"c", "sum"},
	} {
		if full := s.Enter(step.key); full != step.full {
			t.Errorf("step %d: %q, want %q", i, full, step.full)
		}
	}
	s.Leave("a")
	if s.Enter("c") != "" || s.Held() != 3 {
		t.Error("a slot that was left is not free")
	}
	for _, key := range []string{"a", "b", "c"} {
		s.Leave(key)
	}
	if s.Held() != 0 || len(s.held) != 0 {
		t.Errorf("%d slots, %d keys are left", s.Held(), len(s.held))
	}
}

// fakeListener hands out connections from addresses that the test names.
type fakeListener struct{ next chan net.Conn }

func (l fakeListener) Accept() (net.Conn, error) { return <-l.next, nil }
func (l fakeListener) Close() error              { return nil }
func (l fakeListener) Addr() net.Addr            { return addr("here") }

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

type fakeConn struct {
	net.Conn
	from   addr
	closed bool
}

func (c *fakeConn) Read([]byte) (int, error) { return 0, nil }
func (c *fakeConn) RemoteAddr() net.Addr     { return c.from }
func (c *fakeConn) Close() error             { c.closed = true; return nil }

func TestListener(t *testing.T) {
	below := fakeListener{make(chan net.Conn, 1)}
	closed := 0
	l := &Listener{Listener: below, Sum: 5, Each: 3, Closed: func() { closed++ }}
	accept := func(from addr) (*fakeConn, *Conn) {
		raw := &fakeConn{from: from}
		below.next <- raw
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return raw, ConnOf(c)
	}
	node, nodeConn := accept("10.0.0.1:1")
	nodeConn.Prove(Kept)
	proven, provenConn := accept("10.0.0.1:2")
	provenConn.Prove(Proven)
	first, _ := accept("10.0.0.1:3")
	second, _ := accept("10.0.0.1:4")
	if l.Open() != 3 || first.closed {
		t.Fatalf("%d count, want 3: that of the node does not", l.Open())
	}
	accept("10.0.0.1:5") // the address is full: the oldest that showed nothing goes
	if !first.closed || second.closed || proven.closed || node.closed || closed != 1 {
		t.Errorf("closed: first %t, second %t, proven %t, node %t; %d in all", first.closed, second.closed, proven.closed,
			node.closed, closed)
	}
	other, otherConn := accept("[fe80::1]:1")
	accept("[fe80::2]:1")
	if l.Open() != 5 {
		t.Fatalf("%d count", l.Open())
	}
	accept("[fe80::3]:1") // all is full: the address that has most gives one
	if !second.closed || other.closed || l.Open() != 5 {
		t.Errorf("the address with the most was spared: %t, %t, %d", second.closed, other.closed, l.Open())
	}
	if err := otherConn.Close(); err != nil || !other.closed || l.Open() != 4 {
		t.Errorf("closing: %v, %d count", err, l.Open())
	}
	_ = otherConn.Close()
	otherConn.Prove(Proven)
	if l.Open() != 4 {
		t.Errorf("%d count after a connection was closed twice", l.Open())
	}
	// that of the node is not slowed, and one that is closed waits for nothing.
	for _, c := range []*Conn{nodeConn, otherConn} {
		c.Slow(time.Hour)
		if d := time.Duration(c.owes.Load()); d != 0 && c == nodeConn {
			t.Errorf("the node waits %s", d)
		}
		if n, err := c.Read(nil); n != 0 || err != nil {
			t.Error(n, err)
		}
	}
	provenConn.Slow(time.Millisecond)
	if _, err := provenConn.Read(nil); err != nil || provenConn.owes.Load() != 0 {
		t.Errorf("%v, still owes %d", err, provenConn.owes.Load())
	}
}
