package source

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/weir-edge/weir/impl/relay"
	"github.com/weir-edge/weir/impl/relay/rest"
	"github.com/weir-edge/weir/impl/relay/wire"
	"github.com/weir-edge/weir/impl/source/hop"
)

// thinLink carries what a cloud sends, as fast as time passes. All connections share it.
type thinLink struct {
	carried atomic.Int64 // bytes

	mu     sync.Mutex
	room   *sync.Cond
	tokens int
	paying int  // readers that wait until what they read has crossed
	wide   bool // the test has ended: nobody waits any more
}

func newThinLink(t *testing.T) *thinLink {
	t.Helper()
	l := &thinLink{}
	l.room = sync.NewCond(&l.mu)
	t.Cleanup(func() { // else a connection that carried something until the end is not seen to be closed
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wide = true
		l.room.Broadcast()
	})
	return l
}

// pass lets bytes cross. What the link does not need it does not save up. false: it is still at work with what it was
// given.
func (l *thinLink) pass(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paying > 0 && l.tokens > 0 {
		return false
	}
	l.tokens = n
	l.room.Broadcast()
	return true
}

func (l *thinLink) cross(n int, gone func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paying++
	defer func() { l.paying-- }()
	for n > 0 && !l.wide && !gone() {
		if l.tokens == 0 {
			l.room.Wait()
			continue
		}
		part := min(n, l.tokens)
		l.tokens -= part
		n -= part
		l.carried.Add(int64(part))
	}
}

type thinConn struct {
	net.Conn
	link   *thinLink
	closed atomic.Bool
}

func (c *thinConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), 1<<10)])
	c.link.cross(n, c.closed.Load)
	return n, err
}

func (c *thinConn) Close() error {
	c.link.mu.Lock() // else a reader that has just looked would sleep on
	c.closed.Store(true)
	c.link.room.Broadcast()
	c.link.mu.Unlock()
	return c.Conn.Close()
}

// over returns a client of a server whose answers cross a link, on a connection of its own.
func (l *thinLink) over(t *testing.T, srv *httptest.Server) *http.Client {
	t.Helper()
	plain, ok := srv.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the server's client has another transport")
	}
	tr := plain.Clone()
	tr.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		raw, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		config := plain.TLSClientConfig.Clone()
		config.NextProtos, config.ServerName = []string{"h2"}, "example.com"
		conn := tls.Client(&thinConn{Conn: raw, link: l}, config)
		return conn, conn.HandshakeContext(ctx)
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// A backlog that takes the link longer than any time-out: the check of the history does not wait behind it, the watch
// is not taken for dead while bytes come, and each byte crosses once.
func TestBacklogOverThinLink(t *testing.T) {
	const changes, perTick, tick = 24, 1 << 10, 50 * time.Millisecond // 20 KiB each, at 20 KiB a second
	c := testingclock.NewFakeClock(time.Now())
	cloud, mine := newRelay(t), relayBy(t, c)
	if err := cloud.Replace(10, []*wire.Object{slice(t, "x", 5)}); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(&rest.Handler{Source: cloud})
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFeeder(Config{Relay: mine, WatchTimeout: 3 * time.Second, Clock: c})
	if err != nil {
		t.Fatal(err)
	}
	run(t, f.Run)
	f.Use(&hop.Upstream{Name: "cloud", URL: u, Client: srv.Client(), Consistent: true})
	eventually(t, "the first list", func() bool { return mine.Status().Version == 10 })
	f.Use(nil)
	eventually(t, "the end of the watch", func() bool { return cloud.Status().Watchers == 0 }) // it brings none of these
	backlog := 0
	for version := uint64(11); version <= 10+changes; version++ {
		b := largeFrame(t, wire.Modified, "x", version)
		backlog += len(b)
		applyFrame(t, cloud, b)
	}
	link := newThinLink(t)
	thin := &hop.Upstream{Name: "thin cloud", URL: u, Client: link.over(t, srv), Consistent: true}
	thin.Ask, thin.Arrived = link.over(t, srv), link.carried.Load
	asOf := mine.Status().ProgressAt
	f.Use(thin)
	eventually(t, "all of the backlog", func() bool {
		if link.pass(perTick) {
			c.Step(tick)
		}
		if s := mine.Status(); s.Version > 11 && s.Version < 10+changes-1 && s.ProgressAt.After(asOf) {
			t.Fatalf("a backlog passes for fresh at version %d", s.Version)
		}
		return mine.Status().Version == 10+changes || link.carried.Load() > int64(3*backlog)
	})
	if v := mine.Status().Version; v != 10+changes {
		t.Errorf("the relay is at version %d of %d: %+v", v, 10+changes, f.Status())
	}
	if n := link.carried.Load(); n > int64(backlog*5/4) {
		t.Errorf("%d bytes crossed for a backlog of %d", n, backlog)
	}
}

// applyFrame gives a relay a frame as a cloud sends it.
func applyFrame(t *testing.T, r *relay.Relay, frame []byte) {
	t.Helper()
	ev, err := wire.NewEventReader(bytes.NewReader(frame), wire.Protobuf, r.Resource().WireKind()).Next()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Apply(ev); err != nil {
		t.Fatal(err)
	}
}
