package hop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/process"
)

// Backoff between connections that do not come about, or end at once.
const (
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 5 * time.Second
)

// Listener accepts connections by opening them. One waits at a time.
type Listener struct {
	dial   Dial
	clock  clock.Clock
	logger *slog.Logger
	ctx    context.Context
	stop   context.CancelFunc
}

// Dial opens a connection, over which HTTP/1.1 is spoken, to the one that may want to read. It is closed if the context
// that is returned ends before it is wanted: the reader is another one then.
type Dial func(context.Context) (net.Conn, context.Context, error)

// NewListener returns one that opens nothing before Accept.
func NewListener(dial Dial, c clock.Clock, logger *slog.Logger) *Listener {
	ctx, stop := context.WithCancel(context.Background())
	return &Listener{dial, c, logger, ctx, stop}
}

// Accept implements net.Listener. It fails only when the listener is closed.
func (l *Listener) Accept() (net.Conn, error) {
	for backoff := firstBackoff; l.ctx.Err() == nil; {
		began := l.clock.Now()
		conn, err := l.wait()
		if err == nil {
			return conn, nil
		}
		if l.clock.Since(began) > maxBackoff { // it had come about
			backoff = firstBackoff
		}
		l.logger.Debug("no connection waits for a reader of this hub", "err", err)
		process.Pause(l.ctx, l.clock, backoff/2+rand.N(backoff/2))
		backoff = min(2*backoff, maxBackoff)
	}
	return nil, net.ErrClosed
}

// wait opens a connection and returns it when the other end begins to speak.
func (l *Listener) wait() (net.Conn, error) {
	conn, counts, err := l.dial(l.ctx)
	if err != nil {
		return nil, err
	}
	useless := func() { _ = conn.Close() }
	left, closed := context.AfterFunc(counts, useless), context.AfterFunc(l.ctx, useless)
	in, err := l.upgrade(conn)
	if err == nil {
		_, err = in.Peek(1)
	}
	if wanted := left(); !closed() || !wanted {
		err = errors.Join(err, counts.Err(), l.ctx.Err())
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &buffered{conn, in}, nil
}

func (l *Listener) upgrade(conn net.Conn) (*bufio.Reader, error) {
	req, err := http.NewRequestWithContext(l.ctx, http.MethodPost, "https://"+conn.RemoteAddr().String()+contract.LinePath,
		http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", protocol)
	_ = conn.SetDeadline(time.Now().Add(answered))
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, 4<<10)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("POST %s: %s, want 101", contract.LinePath, resp.Status)
	}
	return in, nil
}

// Close implements net.Listener. What was accepted lives on.
func (l *Listener) Close() error {
	l.stop()
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "tcp" }
func (addr) String() string  { return contract.PoolAddressReverse }

// buffered is a connection of which something was read ahead.
type buffered struct {
	net.Conn
	in *bufio.Reader
}

func (c *buffered) Read(p []byte) (int, error) { return c.in.Read(p) }
