package link

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/testkit"
)

const patience = 20 * time.Second

// eventually waits for a condition of the kernel or of toxiproxy, where there is nothing to wait on.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	testkit.Until(t, patience, what, ok)
}

// cloud is the far end: it hands every connection to the test.
type cloud struct {
	net.Listener
	conns chan *net.TCPConn
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{l, make(chan *net.TCPConn, 100)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			c.conns <- conn.(*net.TCPConn)
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return c
}

func (c *cloud) accepted(t *testing.T) *net.TCPConn {
	t.Helper()
	select {
	case conn := <-c.conns:
		return conn
	case <-time.After(patience):
		t.Fatal("no connection arrived")
		return nil
	}
}

type setup struct {
	*Pool
	t     *testing.T
	clock *clocktesting.FakeClock
	cloud *cloud
}

func newSetup(t *testing.T, c Config) *setup {
	t.Helper()
	clock := clocktesting.NewFakeClock(epoch)
	c.Name, c.Clock = "pool-a", clock
	p, err := NewPool(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return &setup{p, t, clock, newCloud(t)}
}

func (s *setup) proxy(node, class string) *Proxy {
	s.t.Helper()
	x, err := s.Proxy(node, class, "127.0.0.1:0", s.cloud.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	return x
}

func (s *setup) dial(x *Proxy) *net.TCPConn {
	s.t.Helper()
	c, err := net.Dial("tcp", x.Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// connect returns both ends of a connection on a link without latency.
func (s *setup) connect(node, class string) (client, server *net.TCPConn) {
	s.t.Helper()
	client = s.dial(s.proxy(node, class))
	return client, s.cloud.accepted(s.t)
}

// write sends, on a goroutine where the link may push back.
func write(t *testing.T, c net.Conn, data []byte) {
	t.Helper()
	if _, err := c.Write(data); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, c net.Conn, n int) string {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	b := make([]byte, n)
	if _, err := io.ReadFull(c, b); err != nil {
		t.Fatalf("read %d bytes: %v", n, err)
	}
	return string(b)
}

// silent checks that nothing can be read now.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	n, err := c.Read(make([]byte, 1))
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errTimeout(err)) {
		t.Errorf("read %d bytes and %v, want silence", n, err)
	}
}

func errTimeout(err error) error {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return err
	}
	return errors.New("no timeout")
}

// step moves the clock once somebody waits for it.
func (s *setup) step(d time.Duration) {
	s.t.Helper()
	eventually(s.t, "a timer is set", s.clock.HasWaiters)
	s.clock.Step(d)
}

func (s *setup) bytes(dir Direction) int64 {
	return Sum(s.Counters(), func(c Counter) bool { return c.Dir == dir })
}
