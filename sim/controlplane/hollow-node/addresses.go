package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"
)

// addresses are those that a machine's pods may have.
type addresses struct {
	all []netip.Addr // loopback

	mu    sync.Mutex
	taken map[netip.Addr]string // by sandbox
	doors map[string]*http.Server
}

func newAddresses(first string, n int) (*addresses, error) {
	a, err := netip.ParseAddr(first)
	if err != nil || !a.Is4() || a.As4()[0] != 127 {
		return nil, fmt.Errorf("--first-address %q: want 127.x.y.z", first)
	}
	if last := int(a.As4()[3]) + n - 1; n < 1 || last > 254 {
		return nil, fmt.Errorf("--pods %d: want 1 to %d from %s on", n, 255-int(a.As4()[3]), first)
	}
	book := &addresses{taken: map[netip.Addr]string{}, doors: map[string]*http.Server{}}
	for range n {
		book.all = append(book.all, a)
		a = a.Next()
	}
	return book, nil
}

// take gives a sandbox the first free address, with an HTTP server there, and returns the address that the cluster
// knows. That is alive as long as the machine, or until release.
func (b *addresses) take(ctx context.Context, sandbox string, port int, h http.Handler) (ip string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range b.all {
		if b.taken[a] != "" {
			continue
		}
		l, err := new(net.ListenConfig).Listen(context.WithoutCancel(ctx), "tcp",
			net.JoinHostPort(a.String(), strconv.Itoa(port)))
		if err != nil {
			return "", fmt.Errorf("listen for pod %s: %w", sandbox, err)
		}
		s := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
		b.taken[a], b.doors[sandbox] = sandbox, s
		go func() { _ = s.Serve(l) }()
		known := a.As4()
		known[0] = 10
		return netip.AddrFrom4(known).String(), nil
	}
	return "", fmt.Errorf("all %d addresses of pods are taken", len(b.all))
}

// release ends the server of a sandbox and gives its address back.
func (b *addresses) release(sandbox string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.doors[sandbox]; s != nil {
		_ = s.Close()
		delete(b.doors, sandbox)
	}
	for a, by := range b.taken {
		if by == sandbox {
			delete(b.taken, a)
		}
	}
}
