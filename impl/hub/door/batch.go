package door

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/weir-edge/weir/impl/limit"
)

const (
	// fullFrame is a DATA frame of the size that clients take by default: more of them follow.
	fullFrame = 9 + 16<<10
	// batchSize is how many bytes of frames become TLS records, and one write to the kernel, together: whole records.
	batchSize = 4 * 16 << 10
	// sealedSize has room for their headers and tags.
	sealedSize = batchSize + 4*64
	// lastWrite is how long a connection that closes may take to send what it was given.
	lastWrite = time.Second
)

var batches = sync.Pool{New: func() any { b := make([]byte, 0, sealedSize); return &b }}

// batchHTTP2 makes a server write HTTP/2 frames in batches. The HTTP/2 server of Go writes frame by frame, each in a
// goroutine of its own, and a frame of 16 KiB with its header is two TLS records and two system calls: for a large list
// that is twice what all the rest costs. net/http does not let its own be given another connection,
// golang.org/x/net/http2 does. A connection of this node, as node tells if it is set, may have more streams.
func batchHTTP2(server *http.Server, node func(*tls.ConnectionState) bool) error {
	h2 := &http2.Server{MaxConcurrentStreams: limit.MaxStreams}
	if err := http2.ConfigureServer(server, h2); err != nil {
		return err
	}
	forNode := *h2
	forNode.MaxConcurrentStreams = limit.MaxStreamsNode
	plain := server.TLSNextProto[http2.NextProtoTLS]
	server.TLSNextProto[http2.NextProtoTLS] = func(hs *http.Server, c *tls.Conn, h http.Handler) {
		below, ok := c.NetConn().(*sealedConn)
		if !ok {
			plain(hs, c, h)
			return
		}
		opts := &http2.ServeConnOpts{Handler: h, BaseConfig: hs}
		if b, ok := h.(interface{ BaseContext() context.Context }); ok { // how net/http passes on a connection's context
			opts.Context = b.BaseContext()
		}
		h2 := h2
		if state := c.ConnectionState(); node != nil && node(&state) {
			h2 = &forNode
			if own := limit.ConnOf(below); own != nil {
				own.Prove(limit.Kept)
			}
		}
		h2.ServeConn(newBatchedConn(c, below), opts)
	}
	return nil
}

// batchedConn is a connection to which full frames are written while the ones before are encrypted and sent. A write
// that is no full frame, and finds nothing under way, goes straight through: it does not wait, and costs no goroutine.
type batchedConn struct {
	*tls.Conn
	below *sealedConn

	mu      sync.Mutex
	changed sync.Cond
	pending *[]byte // frames that wait for those under way
	writing bool
	err     error // of an earlier write: the connection is lost
}

func newBatchedConn(c *tls.Conn, below *sealedConn) *batchedConn {
	b := &batchedConn{Conn: c, below: below}
	b.changed.L = &b.mu
	return b
}

// Write takes p, if need be before it is sent; then a failure shows at a later Write, and at the reader.
func (b *batchedConn) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.writing && b.err == nil && len(p) < fullFrame {
		b.writing = true
		b.mu.Unlock()
		n, err := b.Conn.Write(p)
		b.mu.Lock()
		b.wrote(err)
		return n, err
	}
	written := 0
	for written < len(p) {
		for b.err == nil && b.pending != nil && len(*b.pending) == batchSize {
			b.changed.Wait()
		}
		if b.err != nil {
			return written, b.err
		}
		if b.pending == nil {
			b.pending = batches.Get().(*[]byte)
		}
		have := len(*b.pending)
		n := min(batchSize-have, len(p)-written)
		*b.pending = append(*b.pending, p[written:written+n]...)
		written += n
		if !b.writing {
			b.writing = true
			go b.send()
		}
	}
	return written, nil
}

// wrote notes the end of a write, and goes on with what came meanwhile; b.mu is held.
func (b *batchedConn) wrote(err error) {
	b.writing = false
	if b.err == nil {
		b.err = err
	}
	if b.pending != nil && b.err == nil {
		b.writing = true
		go b.send()
	}
	b.changed.Broadcast()
}

// send writes what is pending until nothing is left. Write starts it, and it ends at the latest with the connection.
func (b *batchedConn) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.pending != nil && b.err == nil {
		batch := b.pending
		b.pending = nil
		b.changed.Broadcast()
		b.mu.Unlock()
		err := b.below.together(func() error {
			_, err := b.Conn.Write(*batch)
			return err
		})
		*batch = (*batch)[:0]
		batches.Put(batch)
		if err != nil {
			_ = b.below.Close() // the reader shall know
		}
		b.mu.Lock()
		b.err = err
	}
	b.wrote(b.err)
}

// Close sends what is pending, if that does not take long.
func (b *batchedConn) Close() error {
	b.mu.Lock()
	if b.writing {
		_ = b.SetWriteDeadline(time.Now().Add(lastWrite))
	}
	for b.writing {
		b.changed.Wait()
	}
	b.mu.Unlock()
	return b.Conn.Close()
}

// sealedListener accepts connections for TLS on top.
type sealedListener struct{ net.Listener }

func (l sealedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sealedConn{Conn: c}, nil
}

// sealedConn is the connection below TLS. crypto/tls writes record by record.
type sealedConn struct {
	net.Conn

	mu   sync.Mutex
	held *[]byte // records to be written together; nil: each as it comes
}

// NetConn is the connection below.
func (c *sealedConn) NetConn() net.Conn { return c.Conn }

// together sends with one write what f writes.
func (c *sealedConn) together(f func() error) error {
	c.mu.Lock()
	c.held = batches.Get().(*[]byte)
	c.mu.Unlock()
	err := f()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		err = c.sendHeld()
	}
	*c.held = (*c.held)[:0]
	batches.Put(c.held)
	c.held = nil
	return err
}

// Write implements net.Conn.
func (c *sealedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if c.held == nil {
		c.mu.Unlock()
		return c.Conn.Write(p)
	}
	defer c.mu.Unlock()
	if len(*c.held)+len(p) > cap(*c.held) {
		if err := c.sendHeld(); err != nil {
			return 0, err
		}
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

// sendHeld writes the records held; c.mu is held.
func (c *sealedConn) sendHeld() error {
	_, err := c.Conn.Write(*c.held)
	*c.held = (*c.held)[:0]
	return err
}
