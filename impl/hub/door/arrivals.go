package door

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// arrives bounds how long a connection is waited for that was accepted and says nothing.
const arrives = time.Second

// arrivals are connections that were accepted, and on which no request has come to the handler yet. A server that is
// shut down by http.Server.Shutdown drops a first request that it reads from then on, and its client has no answer. So
// serve closes the listener first, waits until there are no arrivals any more, and shuts the server down then.
type arrivals struct {
	patience time.Duration

	mu   sync.Mutex
	all  map[net.Conn]*arrival
	none chan struct{} // is closed when there are none; nil: nobody waits
}

type arrival struct {
	conn  net.Conn
	there atomic.Bool
}

type arrivalKey struct{}

func newArrivals(patience time.Duration) *arrivals {
	return &arrivals{patience: patience, all: map[net.Conn]*arrival{}}
}

// with is the ConnContext of a server.
func (a *arrivals) with(ctx context.Context, conn net.Conn) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all[conn] = &arrival{conn: conn}
	return context.WithValue(ctx, arrivalKey{}, a.all[conn])
}

// state is the ConnState of a server.
func (a *arrivals) state(conn net.Conn, state http.ConnState) {
	if state == http.StateClosed || state == http.StateHijacked {
		a.remove(conn)
	}
}

// handler tells that a request has come.
func (a *arrivals) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if c, ok := req.Context().Value(arrivalKey{}).(*arrival); ok && !c.there.Swap(true) {
			a.remove(c.conn)
		}
		next.ServeHTTP(w, req)
	})
}

func (a *arrivals) remove(conn net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.all, conn)
	if len(a.all) == 0 && a.none != nil {
		close(a.none)
		a.none = nil
	}
}

// wait waits until there are none, for a while. No more may come.
func (a *arrivals) wait() {
	a.mu.Lock()
	if len(a.all) == 0 {
		a.mu.Unlock()
		return
	}
	none := make(chan struct{})
	a.none = none
	a.mu.Unlock()
	limit := time.NewTimer(a.patience)
	defer limit.Stop()
	select {
	case <-none:
	case <-limit.C:
	}
}
