package hop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	protocol = "weir-line"
	switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n\r\n"
	answered = 10 * time.Second // for the answer to come, or to go
)

// Lot has the connections that wait for a reader, one of each name: a later one takes the place of the one before. The
// zero value is ready. It is safe for concurrent use.
type Lot struct {
	mu      sync.Mutex
	waiting map[string]net.Conn
	came    chan struct{} // closed when one comes; nil: nobody waits for one
	closed  bool
}

// Admit answers a request to LinePath of a caller that is known by a name. It never blocks for long.
func (l *Lot) Admit(w http.ResponseWriter, req *http.Request, name string) {
	if req.Method != http.MethodPost || req.ProtoMajor != 1 || !strings.EqualFold(req.Header.Get("Upgrade"), protocol) {
		http.Error(w, "want POST over HTTP/1.1 with Upgrade: "+protocol, http.StatusBadRequest)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = conn.SetDeadline(time.Now().Add(answered))
	_, err = conn.Write([]byte(switched))
	_ = conn.SetDeadline(time.Time{})
	if err != nil || buffered.Reader.Buffered() > 0 { // who serves does not speak first
		_ = conn.Close()
		return
	}
	l.put(name, conn)
}

func (l *Lot) put(name string, conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return
	}
	if before := l.waiting[name]; before != nil {
		_ = before.Close()
	}
	if l.waiting == nil {
		l.waiting = map[string]net.Conn{}
	}
	l.waiting[name] = conn
	if l.came != nil {
		close(l.came)
		l.came = nil
	}
}

// Take waits for a connection of a name, until ctx ends.
func (l *Lot) Take(ctx context.Context, name string) (net.Conn, error) {
	for {
		l.mu.Lock()
		conn := l.waiting[name]
		delete(l.waiting, name)
		if l.came == nil {
			l.came = make(chan struct{})
		}
		came, closed := l.came, l.closed
		l.mu.Unlock()
		switch {
		case conn != nil:
			return conn, nil
		case closed:
			return nil, net.ErrClosed
		}
		select {
		case <-came:
		case <-ctx.Done():
			return nil, fmt.Errorf("%s has not connected: %w", name, errors.Join(ctx.Err(), context.Cause(ctx)))
		}
	}
}

// Close closes all that wait, and anyone who comes later.
func (l *Lot) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, conn := range l.waiting {
		_ = conn.Close()
	}
	clear(l.waiting)
	if l.came != nil {
		close(l.came)
		l.came = nil
	}
}
