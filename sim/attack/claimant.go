package attack

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/sim/runtime"
)

// claimant is a connection to weir-gate of somebody who says that he leads. He takes all that he is asked for.
type claimant struct {
	net.Conn
	in    *bufio.Reader
	code  int // of the gate's answer
	ended chan struct{}

	mu   sync.Mutex
	seen []call
}

// call is what the gate asks a hub for: an address, and of which node it says that it is.
type call struct{ address, node string }

// claim opens one. If the gate takes it, it is served.
func (x *scene) claim(ctx context.Context, as, path string, header ...string) (*claimant, error) {
	c, err := x.upgrade(ctx, as, path, header...)
	if err != nil {
		return nil, err
	}
	if c.code == http.StatusSwitchingProtocols {
		go c.serve()
	} else {
		close(c.ended)
	}
	return c, nil
}

// upgrade asks the gate to take the roles of a client, and says nothing after that.
func (x *scene) upgrade(ctx context.Context, as, path string, header ...string) (*claimant, error) {
	who, err := x.who(as)
	if err != nil {
		return nil, err
	}
	conn, err := x.dial(ctx, gateDoor, who, "http/1.1")
	if err != nil {
		return nil, err
	}
	c := &claimant{Conn: conn, in: bufio.NewReader(conn), ended: make(chan struct{})}
	if who.token != "" {
		header = append(header, "Authorization: Bearer "+who.token)
	}
	request := "POST " + path + " HTTP/1.1\r\nHost: gate\r\nConnection: Upgrade\r\nUpgrade: weir-reverse\r\n"
	for _, h := range header {
		request += h + "\r\n"
	}
	_ = conn.SetDeadline(time.Now().Add(answerPatience))
	_, err = io.WriteString(conn, request+"\r\n")
	var resp *http.Response
	if err == nil {
		resp, err = http.ReadResponse(c.in, nil)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("POST %s as %q: %w", path, as, err)
	}
	_ = resp.Body.Close()
	_ = conn.SetDeadline(time.Time{})
	c.code = resp.StatusCode
	return c, nil
}

// Read implements net.Conn.
func (c *claimant) Read(p []byte) (int, error) { return c.in.Read(p) }

// serve answers as a hub that leads, and dials nothing.
func (c *claimant) serve() {
	defer close(c.ended)
	server := &http2.Server{}
	server.ServeConn(c, &http2.ServeConnOpts{
		BaseConfig: &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}, // no limits: it lies
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Method != http.MethodConnect {
				w.WriteHeader(http.StatusNoContent)
				return
			}
			c.mu.Lock()
			c.seen = append(c.seen, call{req.Host, req.Header.Get("Weir-Node")})
			c.mu.Unlock()
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			_, _ = io.Copy(io.Discard, req.Body)
		}),
	})
}

// asked is what the gate wanted to be dialed.
func (c *claimant) asked() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.seen)
}

// lives reports whether the gate keeps the connection.
func (c *claimant) lives() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

func (c *claimant) close() {
	_ = c.Close()
	<-c.ended
}

// hostileHub does all that costs the gate something, as the hub of one pool.
func hostileHub(ctx context.Context, x *scene) error {
	gate, err := x.site.Part(runtime.Gate)
	if err != nil {
		return err
	}
	if err := x.floodHeaders(ctx, gateDoor, gate); err != nil {
		return err
	}
	x.byLeader(ctx)
	before := linesOf(gate)
	if err := x.watchMemoryOf(ctx, gate, "silent connections, and many of a leader", func() error {
		return x.manyWays(ctx)
	}); err != nil {
		return err
	}
	for name, bomb := range map[string]func(*http2.Framer) error{
		"frames of an unknown type": func(f *http2.Framer) error { return f.WriteRawFrame(0xee, 0, 3, make([]byte, 16<<10)) },
		"data that nobody asked for": func(f *http2.Framer) error {
			return f.WriteRawFrame(http2.FrameData, 0, 3, make([]byte, 16<<10))
		},
		"a header without end": func(f *http2.Framer) error {
			return f.WriteRawFrame(http2.FrameContinuation, 0, 1, make([]byte, 16<<10))
		},
	} {
		if err := x.watchMemoryOf(ctx, gate, name, func() error { return x.bombGate(ctx, name, bomb) }); err != nil {
			return err
		}
		x.byLeader(ctx)
	}
	lines := linesOf(gate) - before
	x.judge(lines <= 100, "%d lines in the log of the gate", lines)
	return nil
}

// manyWays opens more connections than a pool may have, silent ones and good ones.
func (x *scene) manyWays(ctx context.Context) error {
	var all []*claimant
	defer func() {
		for _, c := range all {
			_ = c.Close()
		}
	}()
	codes := map[int]int{}
	for range 60 {
		c, err := x.upgrade(ctx, "foreign hub", contract.ReversePath)
		if err != nil {
			return err
		}
		codes[c.code]++
		all = append(all, c)
	}
	silent := codes[http.StatusSwitchingProtocols]
	x.judge(silent <= 4 && silent+codes[http.StatusTooManyRequests] == 60, "60 silent connections: %v", codes)
	x.byLeader(ctx)
	for _, c := range all {
		_ = c.Close()
	}
	var good []*claimant
	defer func() {
		for _, c := range good {
			c.close()
		}
	}()
	for range 12 {
		err := until(ctx, "a connection to be taken", func() bool {
			c, err := x.claim(ctx, "foreign hub", contract.ReversePath)
			if err != nil {
				return false
			}
			if c.code != http.StatusSwitchingProtocols {
				c.close()
				return false
			}
			good = append(good, c)
			return true
		})
		if err != nil {
			return err
		}
	}
	lives := func() (n int) {
		for _, c := range good {
			if c.lives() {
				n++
			}
		}
		return n
	}
	few := within(ctx, 20*time.Second, func() bool { return lives() <= 4 })
	x.judge(few, "of 12 connections of a leader the gate keeps %d", lives())
	x.byLeader(ctx)
	return nil
}

// bombGate answers the gate's first request as a leader does, and then writes what it must not.
func (x *scene) bombGate(ctx context.Context, name string, bomb func(*http2.Framer) error) error {
	var c *claimant
	err := until(ctx, "a connection to be taken", func() (taken bool) {
		var err error
		if c, err = x.upgrade(ctx, "foreign hub", contract.ReversePath); err != nil {
			return false
		}
		if taken = c.code == http.StatusSwitchingProtocols; !taken {
			_ = c.Close()
		}
		return taken
	})
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(answerPatience))
	f := http2.NewFramer(c, nil)
	if err := f.WriteSettings(); err != nil {
		return err
	}
	// The gate's preface, settings and request come meanwhile. Its answer is 204, an entry of HPACK's static table.
	err = f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: []byte{0x89}, EndHeaders: true, EndStream: true,
	})
	if err != nil {
		return err
	}
	sent := 0
	for ; sent < 64<<20 && err == nil; sent += 16 << 10 {
		err = bomb(f)
	}
	x.judge(err != nil, "%s: the gate ends the connection: %t, after %d kB", name, err != nil, sent>>10)
	return nil
}
