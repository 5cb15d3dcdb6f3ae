package reverse

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// buffers are of one piece each.
var buffers = sync.Pool{New: func() any { b := make([]byte, pieceHead+pieceMax); return &b }}

// carried are the requests of one connection to a gate.
type carried struct {
	leader *Leader
	pace   *pacer

	mu    sync.Mutex
	ended bool
	open  int // into the pool
	all   sync.WaitGroup
}

// begin counts a request, unless the connection is over.
func (x *carried) begin() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended {
		return false
	}
	x.all.Add(1)
	return true
}

// wait refuses further requests, and waits until those that there are have ended.
func (x *carried) wait() {
	x.mu.Lock()
	x.ended = true
	x.mu.Unlock()
	x.all.Wait()
}

// opens takes one more connection into the pool, or one less. It reports whether there is room.
func (x *carried) opens(n int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n > 0 && x.open >= x.leader.c.Streams {
		return false
	}
	x.open += n
	x.leader.mu.Lock()
	x.leader.state.Open += n
	x.leader.mu.Unlock()
	return true
}

// ServeHTTP implements http.Handler.
func (x *carried) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !x.begin() {
		panic(http.ErrAbortHandler)
	}
	defer x.all.Done()
	switch {
	case req.Method == http.MethodConnect:
		x.connect(w, req)
	case req.Method == http.MethodGet && req.URL.Path == contract.ReversePath:
		x.leader.taken()
		w.WriteHeader(http.StatusNoContent)
	default:
		http.Error(w, "want CONNECT, or GET "+contract.ReversePath, http.StatusNotFound)
	}
}

// connect dials an address of the pool and carries what both ends say.
func (x *carried) connect(w http.ResponseWriter, req *http.Request) {
	l := x.leader
	logger := l.c.Logger.With("address", clean(req.Host))
	if !x.opens(1) {
		http.Error(w, "the hub has as many connections as it may", Busy.Status())
		return
	}
	defer x.opens(-1)
	conn, err := l.connect(req)
	if err != nil {
		if err.Kind == Refused {
			l.refused.Add(1)
		} else {
			l.failed.Add(1)
		}
		logger.Warn("a connection into the pool does not come about", "err", err)
		http.Error(w, err.Why, err.Kind.Status())
		return
	}
	l.opened.Add(1)
	t := &tunnel{w: w, answer: http.NewResponseController(w), req: req, conn: conn, leader: l, pace: x.pace}
	began := l.c.Clock.Now()
	end := t.run()
	logger.Info("a connection into the pool is over", "up", t.up, "down", t.down, "took", l.c.Clock.Since(began).
		Round(time.Millisecond), "end", end)
}

func (l *Leader) connect(req *http.Request) (net.Conn, *Error) {
	ctx, cancel := context.WithTimeout(req.Context(), l.c.DialWithin)
	defer cancel()
	reach, err := l.c.Reach(ctx, req.Header.Get(nodeHeader))
	if err != nil {
		return nil, dialError(err, "", clean(req.Host))
	}
	to, err := reach.Check(req.Host)
	if err != nil {
		return nil, dialError(err, "", clean(req.Host))
	}
	conn, err := l.c.Connect(ctx, to)
	if err != nil {
		return nil, dialError(err, "", to.String())
	}
	return conn, nil
}

// tunnel is one connection into the pool.
type tunnel struct {
	w        http.ResponseWriter
	answer   *http.ResponseController
	req      *http.Request
	conn     net.Conn
	leader   *Leader
	pace     *pacer
	up, down uint64 // bytes
}

// run carries until both directions have ended, or one has broken, and reports how it ended.
func (t *tunnel) run() (end string) {
	t.w.WriteHeader(http.StatusOK)
	_ = t.answer.Flush()
	done := make(chan error, 1)
	go func() { done <- t.sendDown() }()
	err := t.sendUp()
	if err == nil { // the pool's end has said all; the other one may still speak
		err = <-done
		_ = t.conn.Close()
	} else {
		t.w.Header().Set(http.TrailerPrefix+endHeader, clean(err.Error()))
		abort(t.conn)
		_ = t.req.Body.Close()
		if first := <-done; first != nil && errors.Is(err, net.ErrClosed) { // it has closed the connection
			err = first
		}
	}
	if err != nil {
		return clean(err.Error())
	}
	return "both ends have ended it"
}

// sendUp carries what comes out of the pool, to its end.
func (t *tunnel) sendUp() error {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	for buf := *b; ; {
		n, err := t.conn.Read(buf[pieceHead:][:t.pace.most(pieceMax)])
		if n > 0 {
			if err := t.pace.pass(t.req.Context(), n); err != nil {
				return err
			}
			if err := t.piece(buf, n); err != nil {
				return err
			}
			t.up += uint64(n)
			t.leader.up.Add(uint64(n))
		}
		switch {
		case errors.Is(err, io.EOF):
			return t.piece(buf, 0)
		case err != nil:
			return err
		}
	}
}

func (t *tunnel) piece(buf []byte, n int) error {
	putHead(buf, n)
	if _, err := t.w.Write(buf[:pieceHead+n]); err != nil {
		return err
	}
	return t.answer.Flush()
}

// sendDown carries what goes into the pool, to its end. If it breaks, it ends the connection in the pool.
func (t *tunnel) sendDown() error {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	var lost error // the pool's end takes no more; what it still says is carried
	for buf := *b; ; {
		n, err := t.req.Body.Read(buf)
		if n > 0 && lost == nil {
			if _, lost = t.conn.Write(buf[:n]); lost == nil {
				t.down += uint64(n)
				t.leader.down.Add(uint64(n))
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if lost == nil {
				lost = closeWrite(t.conn)
			}
			return lost
		case err != nil:
			abort(t.conn)
			return errors.Join(lost, err)
		}
	}
}
