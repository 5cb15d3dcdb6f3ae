package reverse

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/testkit"
)

// TestEcho: bytes go both ways through gate, leader and pool, and both ends know who is there.
func TestEcho(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	l, _ := b.lead("edge-1", nil)
	b.listen(kubelet, echo)
	c := b.dial(kubelet)
	for _, s := range []string{"a", strings.Repeat("b", 100_000), "c"} {
		go io.WriteString(c, s)
		says(t, c, s)
	}
	if c.RemoteAddr().String() != kubelet || c.RemoteAddr().Network() != "tcp" ||
		c.LocalAddr().String() != "pool harbour" {
		t.Errorf("from %v to %v", c.LocalAddr(), c.RemoteAddr())
	}
	// Bytes are counted once they are handed on, so the other end may have them first.
	testkit.Until(t, time.Minute, "all bytes to be counted", func() bool {
		l, w := l.State(), b.ways.State()
		return l.UpBytes == 100_002 && l.DownBytes == 100_002 && w.UpBytes == 100_002 && w.DownBytes == 100_002
	})
	if s := l.State(); !s.Connected || s.Err != "" || s.Open != 1 || s.Connections != 1 || s.Opened != 1 {
		t.Errorf("leader %+v", s)
	}
	if s := b.ways.State(); len(s.Ways) != 1 || s.Ways[0].Node != "edge-1" || s.Ways[0].Open != 1 || s.Came != 1 ||
		s.Opened != 1 {
		t.Errorf("gate %+v", s)
	}
	_ = c.Close()
	testkit.Until(t, time.Minute, "both ends to have ended it", func() bool {
		return l.State().Open == 0 && b.ways.State().Ways[0].Open == 0 && b.ways.slots.Held() == 0
	})
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after close: %v", err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

// TestHalfClose: each direction ends by itself, and the other one goes on.
func TestHalfClose(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	l, _ := b.lead("edge-1", nil)
	b.listen(kubelet, func(c *net.TCPConn) { // hears all before it answers
		all, _ := io.ReadAll(c)
		fmt.Fprintf(c, "%d bytes", len(all))
	})
	b.listen("10.0.0.8:10250", func(c *net.TCPConn) { // says all, and hears what comes then
		_, _ = io.WriteString(c, "all")
		_ = c.CloseWrite()
		got, _ := io.ReadAll(c)
		b.log.Write(append(got, '\n'))
	})
	c := b.dial(kubelet)
	_, _ = c.Write(make([]byte, 300_000))
	if err := c.(*stream).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("written after the end")
	}
	if got, err := io.ReadAll(c); err != nil || string(got) != "300000 bytes" {
		t.Errorf("%q, %v", got, err)
	}
	c = b.dial("10.0.0.8:10250")
	if got, err := io.ReadAll(c); err != nil || string(got) != "all" {
		t.Errorf("%q, %v", got, err)
	}
	for range 3 {
		if _, err := io.WriteString(c, "still here;"); err != nil {
			t.Errorf("written after the other end: %v", err)
		}
	}
	_ = c.Close()
	testkit.Until(t, time.Minute, "all to be heard", func() bool {
		return len(b.log.with("still here;still here;still here;")) > 0
	})
	testkit.Until(t, time.Minute, "all to end", func() bool { return l.State().Open == 0 })
	if n := len(b.log.with("both ends have ended it")); n != 2 {
		t.Errorf("%d have ended well, want 2: %q", n, b.log.with("over"))
	}
}

// TestCloseSends: what was written before Close arrives, as with TCP.
func TestCloseSends(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	b.lead("edge-1", nil)
	heard := make(chan int, 1)
	b.listen(kubelet, func(c *net.TCPConn) {
		n, _ := io.Copy(io.Discard, c)
		heard <- int(n)
	})
	for range 20 {
		c := b.dial(kubelet)
		_, _ = c.Write(make([]byte, 100_000))
		_ = c.Close()
		if n := <-heard; n != 100_000 {
			t.Fatalf("%d bytes of 100000", n)
		}
	}
}

// TestDeadlines: they are those of a net.Conn.
func TestDeadlines(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	b.lead("edge-1", nil)
	silent := make(chan struct{})
	defer close(silent)
	b.listen("10.0.0.8:10250", func(*net.TCPConn) { <-silent })
	b.listen(kubelet, echo)
	c := b.dial(kubelet)
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read: %v", err)
	}
	_ = c.SetDeadline(time.Time{})
	go io.WriteString(c, "on")
	says(t, c, "on")
	c = b.dial("10.0.0.8:10250")
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	n, err := c.Write(make([]byte, 64<<20))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write: %v", err)
	}
	if n > 16<<20 { // both windows, and what the kernel keeps
		t.Errorf("%d bytes wait for a reader that reads nothing", n)
	}
}

// TestErrors: each reason for which a connection does not come about is another kind.
func TestErrors(t *testing.T) {
	b := newBed(t, WaysConfig{PerPool: 2, Sum: 3, DialWithin: 2 * time.Second}, FrontConfig{})
	stuck := make(chan struct{})
	defer close(stuck)
	l, stop := b.lead("edge-1", func(c *LeaderConfig) {
		connect := c.Connect
		c.DialWithin = 100 * time.Millisecond
		c.Connect = func(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
			switch a.Port() {
			case 8081:
				<-ctx.Done()
				return nil, ctx.Err()
			case 8082:
				<-stuck
			}
			return connect(ctx, a)
		}
	})
	b.listen(kubelet, echo)
	try := func(pool, address string, want Kind, say string) {
		t.Helper()
		c, err := b.ways.Dial(t.Context(), Place{Pool: pool}, address)
		if err == nil {
			_ = c.Close()
		}
		if kindOfError(err) != want || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want %s: %s", address, err, want, say)
		}
	}
	try("harbour", "10.0.0.9:10250", Refused, "pool harbour: 10.0.0.9:10250: refused: it is no node of the pool")
	try("harbour", "169.254.169.254:80", Refused, "link-local")
	try("harbour", "localhost:10250", Refused, "no IP address")
	try("harbour", "10.0.0.8:10250", Unreachable, "nothing is there")
	try("harbour", "10.244.0.1:8081", Late, "deadline")
	try("harbour", "10.244.0.1:8082", Late, "in time")
	try("mill", kubelet, NoWay, "pool mill: "+kubelet+": no way: no hub that leads")
	if s := l.State(); s.Refused != 3 || s.Failed != 2 {
		t.Errorf("%+v", s)
	}
	b.dial(kubelet)
	testkit.Until(t, time.Minute, "slots", func() bool { return b.ways.slots.Held() == 1 })
	b.dial(kubelet)
	try("harbour", kubelet, Busy, "2 connections, the most that one pool")
	if b.ways.slots.Enter("other") != "" {
		t.Fatal("no slot")
	}
	try("third", kubelet, Full, "3 connections")
	b.ways.slots.Leave("other")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.ways.Dial(ctx, Place{Pool: "mill"}, kubelet); kindOfError(err) != NoWay {
		t.Errorf("%v", err)
	}
	go stop() // it waits for the one that is stuck
	testkit.Until(t, time.Minute, "the way to go", func() bool { return b.current() == "" })
	stuck <- struct{}{}
	stop()
	try("harbour", kubelet, NoWay, "no hub that leads")
	b.ways.Close()
	try("harbour", kubelet, Full, "the gate is ending")
}

// seeded is the seed of a test: WEIR_SEED, or one that is printed.
func seeded(t *testing.T) uint64 {
	seed := rand.Uint64()
	if s := os.Getenv("WEIR_SEED"); s != "" {
		if _, err := fmt.Sscan(s, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("WEIR_SEED=%d", seed)
	return seed
}

// bytesOf are bytes that follow from a seed.
func bytesOf(seed uint64, n int) []byte {
	var key [32]byte
	copy(key[:], fmt.Sprint(seed))
	b := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(b)
	return b
}

// TestHundred: a hundred connections at once, with writes, reads and pauses at random, each with bytes of its own in
// both directions: each end hears what the other one has said.
func TestHundred(t *testing.T) {
	seed := seeded(t)
	b := newBed(t, WaysConfig{}, FrontConfig{})
	l, _ := b.lead("edge-1", nil)
	var pool sync.WaitGroup // what the pool's ends hear, which may be in a socket when the way is over
	pool.Add(100)
	// The first bytes are a seed: of what comes, and of what is to be said.
	b.listen(kubelet, func(c *net.TCPConn) {
		defer pool.Done()
		var own uint64
		head := make([]byte, 20)
		if _, err := io.ReadFull(c, head); err != nil {
			t.Errorf("the seed: %v", err)
			return
		}
		_, _ = fmt.Sscan(string(head), &own)
		if err := converse(c, own, own+1, own+2); err != nil {
			t.Errorf("seed %d in the pool: %v", own, err)
		}
	})
	all, _ := errgroup.WithContext(t.Context())
	for i := range uint64(100) {
		all.Go(func() error {
			own := seed/2 + i*100
			c := b.dial(kubelet)
			defer c.Close()
			if _, err := fmt.Fprintf(c, "%20d", own); err != nil {
				return err
			}
			if err := converse(c, own, own+2, own+1); err != nil {
				return fmt.Errorf("seed %d at the gate: %w", own, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, time.Minute, "all to end", func() bool { return l.State().Open == 0 && b.ways.slots.Held() == 0 })
	pool.Wait()
	if n := len(b.log.with("both ends have ended it")); n != 100 {
		t.Errorf("%d have ended well", n)
	}
}

// converse says the bytes of one seed and hears those of another, in sizes that follow from a third.
func converse(c net.Conn, sizes, say, hear uint64) error {
	r := rand.New(rand.NewPCG(sizes, say))
	length := func(of uint64) int { return rand.New(rand.NewPCG(of, of)).IntN(300_000) }
	var all errgroup.Group
	all.Go(func() error {
		for left := bytesOf(say, length(say)); len(left) > 0; {
			n := min(1+r.IntN(40_000), len(left))
			if _, err := c.Write(left[:n]); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			left = left[n:]
			if r.IntN(8) == 0 {
				time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
			}
		}
		return closeWrite(c)
	})
	all.Go(func() error {
		r := rand.New(rand.NewPCG(sizes, hear))
		want := bytesOf(hear, length(hear))
		buf := make([]byte, 50_000)
		n := 0
		for {
			got, err := c.Read(buf[:1+r.IntN(len(buf)-1)])
			if n+got > len(want) || !bytes.Equal(buf[:got], want[n:n+got]) {
				return fmt.Errorf("other bytes at %d", n)
			}
			if n += got; errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("read after %d: %w", n, err)
			}
		}
		if n != len(want) {
			return fmt.Errorf("%d bytes, want %d", n, len(want))
		}
		return nil
	})
	return all.Wait()
}

// TestSlowReader: a connection that nobody reads holds its window, and no other one waits for it.
func TestSlowReader(t *testing.T) {
	b := newBed(t, WaysConfig{PerPool: 40, Window: 64 << 10}, FrontConfig{})
	l, _ := b.lead("edge-1", func(c *LeaderConfig) { c.Window = 64 << 10 })
	var said atomic.Int64
	b.listen("10.0.0.8:10250", func(c *net.TCPConn) {
		for buf := make([]byte, 32<<10); ; {
			n, err := c.Write(buf)
			if said.Add(int64(n)); err != nil {
				return
			}
		}
	})
	b.listen(kubelet, echo)
	for range 30 {
		b.dial("10.0.0.8:10250")
	}
	testkit.Until(t, time.Minute, "the writers to wait", func() bool {
		before := said.Load()
		time.Sleep(200 * time.Millisecond)
		return said.Load() == before
	})
	if up := l.State().UpBytes; up > 30*(64<<10+2*pieceMax) {
		t.Errorf("%d bytes are on the way for those who read none: want the windows", up)
	}
	c := b.dial(kubelet)
	began := time.Now()
	for range 20 {
		s := strings.Repeat("x", 50_000)
		go io.WriteString(c, s)
		says(t, c, s)
	}
	t.Logf("1 MB there and back beside them in %v", time.Since(began))
}

// TestLeaderKilled: when the connection of the leader breaks, each stream ends with an error that says so, none with
// an end, and the leader comes again.
func TestLeaderKilled(t *testing.T) {
	b := newBed(t, WaysConfig{Gap: time.Minute}, FrontConfig{})
	l, _ := b.lead("edge-1", nil)
	b.listen(kubelet, echo)
	var all []net.Conn
	for range 10 {
		c := b.dial(kubelet)
		go io.WriteString(c, "hello")
		says(t, c, "hello")
		all = append(all, c)
	}
	b.mu.Lock()
	abort(b.conns[0])
	b.mu.Unlock()
	for _, c := range all {
		_, err := c.Read(make([]byte, 1))
		if kindOfError(err) != Lost || !strings.Contains(err.Error(), "its leader on node edge-1 has ended") {
			t.Errorf("read: %v", err)
		}
		if _, err := c.Write([]byte("x")); kindOfError(err) != Lost {
			t.Errorf("write: %v", err)
		}
	}
	c := b.dial(kubelet) // waits for the next connection
	go io.WriteString(c, "again")
	says(t, c, "again")
	testkit.Until(t, time.Minute, "the pool's ends to be closed", func() bool { return l.State().Open == 1 })
	if s := l.State(); s.Connections != 2 {
		t.Errorf("%+v", s)
	}
}

// TestPoolEndBreaks: an error in the pool is told as an error, with its text.
func TestPoolEndBreaks(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	b.lead("edge-1", nil)
	b.listen(kubelet, func(c *net.TCPConn) {
		_, _ = io.WriteString(c, "so far")
		_, _ = c.Read(make([]byte, 1))
		_ = c.SetLinger(0)
	})
	c := b.dial(kubelet)
	says(t, c, "so far")
	_, _ = c.Write([]byte("x"))
	_, err := c.Read(make([]byte, 1))
	if kindOfError(err) != Broken || !strings.Contains(err.Error(), "reset by peer") {
		t.Errorf("%v", err)
	}
}

// TestAbort: an aborted stream is an error in the pool, and no end.
func TestAbort(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	l, _ := b.lead("edge-1", nil)
	heard := make(chan error, 1)
	b.listen(kubelet, func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		heard <- err
	})
	c := b.dial(kubelet)
	_, _ = c.Write([]byte("x"))
	testkit.Until(t, time.Minute, "it to arrive", func() bool { return l.State().DownBytes == 1 })
	abort(c)
	if err := <-heard; err == nil {
		t.Error("it has ended well")
	}
}

// TestGateKilled: connections in the pool end when the gate is gone, and the leader says that it is.
func TestGateKilled(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	l, _ := b.lead("edge-1", nil)
	heard := make(chan error, 1)
	b.listen(kubelet, func(c *net.TCPConn) {
		_, err := io.Copy(io.Discard, c)
		heard <- err
	})
	c := b.dial(kubelet)
	_, _ = c.Write([]byte("x"))
	testkit.Until(t, time.Minute, "it to arrive", func() bool { return l.State().DownBytes == 1 })
	b.close()
	if err := <-heard; err == nil {
		t.Error("it has ended well in the pool")
	}
	testkit.Until(t, time.Minute, "the leader to see it", func() bool {
		s := l.State()
		return !s.Connected && s.Open == 0 && strings.Contains(s.Err, "refused")
	})
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("it is open at the gate")
	}
}

// TestNewest: the newest hub that leads is asked. What runs through the one before goes on, and that one is asked again
// when the newest has gone.
func TestNewest(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	l1, _ := b.lead("edge-1", nil)
	b.listen(kubelet, echo)
	goes := func(c net.Conn) {
		go io.WriteString(c, "goes on")
		says(t, c, "goes on")
	}
	c := b.dial(kubelet)
	l2, stop := b.lead("edge-2", nil)
	goes(c)
	d := b.dial(kubelet)
	goes(d)
	if l1.State().Open != 1 || l2.State().Open != 1 {
		t.Errorf("%+v, %+v", l1.State(), l2.State())
	}
	if s := b.ways.State().Ways; len(s) != 2 || s[0].Node != "edge-2" || s[0].Older || !s[1].Older || s[1].Open != 1 {
		t.Errorf("%+v", s)
	}
	stop()
	if _, err := d.Read(make([]byte, 1)); kindOfError(err) != Lost {
		t.Errorf("through the hub that has gone: %v", err)
	}
	goes(c)
	goes(b.dial(kubelet))
	if l1.State().Open != 2 {
		t.Errorf("%+v", l1.State())
	}
	if came := b.ways.State().Came; came != 2 { // hubs that both lead do not take each other's place
		t.Errorf("%d connections were taken", came)
	}
}

// TestManyWays: with a fifth connection of a pool the oldest ends.
func TestManyWays(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	for i := range maxWays + 1 {
		b.lead(fmt.Sprint("edge-", i+1), func(c *LeaderConfig) { once(c) })
	}
	testkit.Until(t, time.Minute, "the oldest to go", func() bool { return len(b.ways.State().Ways) == maxWays })
	for _, w := range b.ways.State().Ways {
		if w.Node == "edge-1" {
			t.Errorf("%+v", w)
		}
	}
}

// TestReplicas: a hub that keeps as many connections as there are gates behind one address has one to each, and gets
// the place of one that is away again when it is back.
func TestReplicas(t *testing.T) {
	beds := []*bed{newBed(t, WaysConfig{}, FrontConfig{}), newBed(t, WaysConfig{}, FrontConfig{})}
	var mu sync.Mutex
	taken, n := map[string]bool{}, 0
	for range beds {
		beds[0].start("edge-1", func(c *LeaderConfig) {
			c.Dial = func(ctx context.Context) (net.Conn, error) { // each second connection is to the first gate
				mu.Lock()
				n++
				b := beds[min(1, n%3)]
				mu.Unlock()
				return (&tls.Dialer{Config: b.tls(contract.HubUserPrefix + "harbour:edge-1")}).DialContext(ctx, "tcp", b.addr())
			}
			c.Take = func(name string) (func(), error) {
				mu.Lock()
				defer mu.Unlock()
				if name == "" || taken[name] {
					return nil, fmt.Errorf("%q is taken", name)
				}
				taken[name] = true
				return func() {
					mu.Lock()
					defer mu.Unlock()
					delete(taken, name)
				}, nil
			}
		})
	}
	both := func() {
		t.Helper()
		for _, b := range beds {
			untilT(t, "a way to each gate", func() bool { return len(b.ways.State().Ways) == 1 })
		}
	}
	both()
	beds[1].ways.mu.Lock()
	_ = beds[1].ways.pools["harbour"].ways[0].link.Close()
	beds[1].ways.mu.Unlock()
	untilT(t, "another one", func() bool { return beds[1].ways.State().Came == 2 })
	both()
	if came := beds[0].ways.State().Came; came != 1 {
		t.Errorf("%d connections to a gate that has one", came)
	}
}

// TestNode: the hub is told of which node an address is, and its words are shown where it cannot find out.
func TestNode(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{
		Place: func(host string) (Place, error) {
			switch host {
			case "edge-7", "10.0.0.7":
				return Place{"harbour", "edge-7", netip.MustParseAddr("10.0.0.7")}, nil
			case "10.0.0.9":
				return Place{Pool: "harbour"}, errors.New("two nodes have it")
			}
			return Place{}, nil
		},
	})
	b.lead("edge-1", func(c *LeaderConfig) {
		c.Reach = func(_ context.Context, node string) (Reach, error) {
			if node == "edge-7" {
				return testReach, nil
			}
			return Reach{}, errors.New("ask for node " + node + ": the cloud is away")
		}
	})
	b.kubeletServer(kubelet)
	connect := b.egress("kube-apiserver")
	for _, address := range []string{kubelet, "edge-7:10250"} {
		c, err := connect(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	if _, err := connect(t.Context(), "tcp", "10.0.0.9:10250"); err == nil || !strings.Contains(err.Error(), "two nodes") {
		t.Errorf("%v", err)
	}
	_, err := b.ways.Dial(t.Context(), Place{Pool: "harbour", Node: "edge-8"}, kubelet)
	if kindOfError(err) != Unreachable || !strings.Contains(err.Error(), "ask for node edge-8: the cloud is away") {
		t.Errorf("%v", err)
	}
}

// once lets a leader connect once only.
func once(c *LeaderConfig) {
	dial := c.Dial
	var n atomic.Int32
	c.Dial = func(ctx context.Context) (net.Conn, error) {
		if n.Add(1) > 1 {
			return nil, errors.New("once only")
		}
		return dial(ctx)
	}
}

// TestGrace: a leader that is told to end takes no more, and lets what runs end by itself.
func TestGrace(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	_, stop := b.lead("edge-1", func(c *LeaderConfig) { c.Grace = time.Minute })
	b.listen(kubelet, echo)
	c := b.dial(kubelet)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		stop()
	}()
	testkit.Until(t, time.Minute, "no more to be taken", func() bool {
		d, err := b.ways.Dial(t.Context(), Place{Pool: "harbour"}, kubelet)
		if err == nil {
			_ = d.Close()
		}
		return kindOfError(err) == NoWay
	})
	go io.WriteString(c, "goes on")
	says(t, c, "goes on")
	select {
	case <-stopped:
		t.Error("it has ended")
	default:
	}
	_ = c.Close()
	<-stopped
}

// TestReachChanges: a change of the reach counts for the next connection, and what the default dials is looked at
// again.
func TestReachChanges(t *testing.T) {
	b := newBed(t, WaysConfig{}, FrontConfig{})
	var reach atomic.Pointer[Reach]
	reach.Store(&testReach)
	b.lead("edge-1", func(c *LeaderConfig) {
		c.Reach = func(context.Context, string) (Reach, error) { return *reach.Load(), nil }
	})
	b.listen(kubelet, echo)
	b.dial(kubelet)
	reach.Store(&Reach{})
	if _, err := b.ways.Dial(t.Context(), Place{Pool: "harbour"}, kubelet); kindOfError(err) != Refused {
		t.Errorf("%v", err)
	}
	l, err := NewLeader(LeaderConfig{
		Gate: "gate:1", Dial: func(context.Context) (net.Conn, error) { return nil, io.EOF },
		Reach: reaches(testReach),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.c.Connect(t.Context(), netip.MustParseAddrPort("127.0.0.1:10250")); kindOfError(err) != Refused {
		t.Errorf("the dialer dials loopback: %v", err)
	}
}

// TestConfigs: what cannot work is an error at once.
func TestConfigs(t *testing.T) {
	good := LeaderConfig{
		Gate: "gate:1", Dial: func(context.Context) (net.Conn, error) { return nil, io.EOF },
		Reach: reaches(Reach{}),
	}
	for name, change := range map[string]func(*LeaderConfig){
		"no gate": func(c *LeaderConfig) { c.Gate = "" }, "no dial": func(c *LeaderConfig) { c.Dial = nil },
		"no reach": func(c *LeaderConfig) { c.Reach = nil }, "small window": func(c *LeaderConfig) { c.Window = 1 },
		"streams": func(c *LeaderConfig) { c.Streams = 10_000 },
	} {
		c := good
		change(&c)
		if _, err := NewLeader(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, c := range []WaysConfig{{Window: 1}, {Window: 8 << 20}, {PerPool: -1}, {PerPool: 5000}, {Sum: -1}} {
		if _, err := NewWays(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
	if _, err := NewFront(FrontConfig{}); err == nil {
		t.Error("an empty front")
	}
}
