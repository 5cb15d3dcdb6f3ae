package client_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// breaker is a listener whose connections go on to an address, until they are broken.
type breaker struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns map[net.Conn]bool
	done  sync.WaitGroup
}

// newBreaker listens where the certificate of the address is valid.
func newBreaker(t *testing.T, to string) *breaker {
	t.Helper()
	host, _, err := net.SplitHostPort(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	b := &breaker{Listener: l, to: to, conns: map[net.Conn]bool{}}
	b.done.Go(b.accept)
	t.Cleanup(func() {
		l.Close()
		b.breakAll()
		b.done.Wait()
	})
	return b
}

func (b *breaker) accept() {
	for {
		from, err := b.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", b.to)
		if err != nil {
			from.Close()
			continue
		}
		b.mu.Lock()
		b.conns[from], b.conns[to] = true, true
		b.mu.Unlock()
		b.done.Go(func() { b.carry(from, to) })
		b.done.Go(func() { b.carry(to, from) })
	}
}

func (b *breaker) carry(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	from.Close()
	to.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.conns, from)
	delete(b.conns, to)
}

// breakAll breaks all connections.
func (b *breaker) breakAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		c.Close()
	}
}
