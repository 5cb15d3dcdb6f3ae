package reverse

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// halfIdle is how long one direction may be silent once the other one has ended. A connection that is open in both may
// be silent for ever, as kubectl exec and logs -f are: an end that is gone is found by keepalive of TCP.
const halfIdle = 5 * time.Minute

// pipe carries what two ends say to each other.
type pipe struct {
	client, far net.Conn
	halfIdle    time.Duration // 0: no bound
	up, down    atomic.Uint64 // bytes: to the client, and to the far end

	half atomic.Bool // one direction has ended
	once sync.Once
	why  string
}

// errEnding is the cause of a context that ends all connections.
var errEnding = errors.New("the gate is ending")

// run carries until both directions have ended, one has broken, or ctx ends. Both ends are closed then. It reports why.
func (p *pipe) run(ctx context.Context) string {
	stop := context.AfterFunc(ctx, func() { p.end(clean(context.Cause(ctx).Error())) })
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.carry(p.far, p.client, &p.up, "client")
	}()
	p.carry(p.client, p.far, &p.down, "pool")
	<-done
	p.once.Do(func() {})
	_ = p.far.Close()
	_ = p.client.Close()
	if p.why == "" {
		return "both ends have ended it"
	}
	return p.why
}

// end breaks the connection, and says why. The first reason counts.
func (p *pipe) end(why string) {
	p.once.Do(func() {
		p.why = why
		abort(p.client)
		abort(p.far)
	})
}

// carry copies one direction. to is the name of the end that it goes to.
func (p *pipe) carry(from, into net.Conn, n *atomic.Uint64, to string) {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	for buf := *b; ; {
		if p.halfIdle > 0 && p.half.Load() {
			_ = from.SetReadDeadline(time.Now().Add(p.halfIdle))
		}
		got, err := from.Read(buf)
		if got > 0 {
			if _, err := into.Write(buf[:got]); err != nil {
				p.end("to the " + to + ": " + clean(err.Error()))
				return
			}
			n.Add(uint64(got))
		}
		switch {
		case errors.Is(err, io.EOF):
			p.half.Store(true)
			if p.halfIdle > 0 {
				_ = into.SetReadDeadline(time.Now().Add(p.halfIdle))
			}
			if err := closeWrite(into); err != nil {
				p.end("to the " + to + ": " + clean(err.Error()))
			}
			return
		case errors.Is(err, os.ErrDeadlineExceeded):
			p.end("one end has ended it, and the other one is silent")
			return
		case err != nil:
			p.end("for the " + to + ": " + clean(err.Error()))
			return
		}
	}
}
