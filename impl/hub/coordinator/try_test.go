package coordinator

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/digest"
)

// narrow is a network on which large packets get lost while it is switched on: a connection that has sent more than
// most bytes at once sends nothing more.
type narrow struct {
	net.Dialer
	most int
}

func (n *narrow) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := n.Dialer.DialContext(ctx, network, address)
	if err != nil || n.most == 0 {
		return c, err
	}
	return &narrowConn{Conn: c, most: n.most}, nil
}

type narrowConn struct {
	net.Conn
	most int
	lost atomic.Bool
}

func (c *narrowConn) Write(p []byte) (int, error) {
	if len(p) > c.most || c.lost.Load() { // what follows is not acknowledged either
		c.lost.Store(true)
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// TestTry: each way in which a server cannot be used has its cause, over real sockets.
func TestTry(t *testing.T) {
	fakes, c := replicaBed(t)
	good := At(c.Replicas()[0].URL)[0]
	listen := func(serve func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		check(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				serve(conn)
			}
		}()
		return l.Addr().String()
	}
	at := func(host string) Server { return At(&url.URL{Scheme: "https", Host: host})[0] }
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	check(t, gone.Close())
	someHub := at(good.URL.Host)
	someHub.Node = "edge-9"
	for what, x := range map[string]struct {
		at   Server
		most int
		code int
		want string
	}{
		"it works":                 {at: good},
		"it works through packets": {at: good, most: 64 << 10},
		"nothing listens":          {at: at(gone.Addr().String()), want: digest.Refused},
		"it says nothing":          {at: at(listen(func(net.Conn) {})), want: digest.Mute},
		"it breaks off":            {at: at(listen(func(c net.Conn) { _ = c.Close() })), want: digest.Broken},
		"another one answers":      {at: someHub, want: digest.Stranger},
		"another name": {at: at(strings.Replace(good.URL.Host, "127.0.0.1", "localhost", 1)),
			want: digest.Stranger},
		"large packets get lost":   {at: good, most: 4 << 10, want: digest.Stalls},
		"it does not know the hub": {at: good, code: http.StatusUnauthorized, want: digest.Certificate},
		"it fails, and is reached": {at: good, code: http.StatusInternalServerError},
	} {
		cfg := c.Config
		cfg.Net = &narrow{most: x.most}
		for _, f := range fakes {
			f.mu.Lock()
			f.code = x.code
			f.mu.Unlock()
		}
		client := New(cfg)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		stage, err := client.Try(ctx, x.at)
		cancel()
		client.Close()
		got := ""
		if err != nil {
			got = connectivity.Cause(stage, err)
		}
		if got != x.want {
			t.Errorf("%s: %q at stage %d, %v; want %q", what, got, stage, err, x.want)
		}
	}
}
