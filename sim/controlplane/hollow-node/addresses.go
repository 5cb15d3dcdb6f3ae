package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

// What address a pod gets when its machine starts again.
const (
	sameAddresses    = "same"    // the first that is free
	otherAddresses   = "other"   // one that no pod had before, as long as there is one
	swappedAddresses = "swapped" // the one that the next pod had before, by name
)

var policies = []string{sameAddresses, otherAddresses, swappedAddresses}

// addresses are those that a machine's pods may have.
type addresses struct {
	all    []netip.Addr // loopback
	policy string
	file   string                // of the addresses that pods have, for the next start; empty: nothing is kept
	before map[string]netip.Addr // what pods had when the machine started

	mu    sync.Mutex
	taken map[netip.Addr]string // by sandbox
	had   map[string]netip.Addr // by pod, also those that ended
	doors map[string]*http.Server
}

func newAddresses(first string, n int, policy, file string) (*addresses, error) {
	a, err := netip.ParseAddr(first)
	if err != nil || !a.Is4() || a.As4()[0] != 127 {
		return nil, fmt.Errorf("--first-address %q: want 127.x.y.z", first)
	}
	if last := int(a.As4()[3]) + n - 1; n < 1 || last > 254 {
		return nil, fmt.Errorf("--pods %d: want 1 to %d from %s on", n, 255-int(a.As4()[3]), first)
	}
	if !slices.Contains(policies, policy) || policy != sameAddresses && file == "" {
		return nil, fmt.Errorf("--addresses %q: want one of %v, and --address-file if not the first", policy, policies)
	}
	book := &addresses{
		policy: policy, file: file, taken: map[netip.Addr]string{}, had: map[string]netip.Addr{},
		doors: map[string]*http.Server{},
	}
	for range n {
		book.all = append(book.all, a)
		a = a.Next()
	}
	return book, book.load()
}

// load reads what pods had before.
func (b *addresses) load() error {
	if b.file == "" {
		return nil
	}
	data, err := os.ReadFile(b.file)
	if err == nil {
		err = json.Unmarshal(data, &b.had)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read --address-file: %w", err)
	}
	b.before = maps.Clone(b.had)
	return nil
}

// keep writes what pods have, whole or not at all: a machine may lose its power meanwhile.
func (b *addresses) keep() error {
	if b.file == "" {
		return nil
	}
	data, err := json.Marshal(b.had)
	if err == nil {
		err = os.WriteFile(b.file+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(b.file+".new", b.file)
	}
	return err
}

// take gives the sandbox of a pod an address, with an HTTP server there, and returns the address that the cluster
// knows. That is alive as long as the machine, or until release.
func (b *addresses) take(ctx context.Context, sandbox, pod string, port int, h http.Handler) (ip string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.choose(pod)
	if !ok {
		return "", fmt.Errorf("all %d addresses of pods are taken", len(b.all))
	}
	l, err := new(net.ListenConfig).Listen(context.WithoutCancel(ctx), "tcp",
		net.JoinHostPort(a.String(), strconv.Itoa(port)))
	if err != nil {
		return "", fmt.Errorf("listen for pod %s: %w", sandbox, err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Second}
	b.taken[a], b.had[pod], b.doors[sandbox] = sandbox, a, s
	go func() { _ = s.Serve(l) }()
	known := a.As4()
	known[0] = 10
	return netip.AddrFrom4(known).String(), b.keep()
}

// choose finds a free address for a pod.
func (b *addresses) choose(pod string) (netip.Addr, bool) {
	free := slices.DeleteFunc(slices.Clone(b.all), func(a netip.Addr) bool { return b.taken[a] != "" })
	if b.policy == swappedAddresses {
		pods := slices.Sorted(maps.Keys(b.before))
		if i := slices.Index(pods, pod); i >= 0 {
			if a := b.before[pods[(i+1)%len(pods)]]; slices.Contains(free, a) {
				return a, true
			}
		}
	}
	if b.policy != sameAddresses {
		former := slices.Collect(maps.Values(b.before))
		fresh := slices.DeleteFunc(slices.Clone(free), func(a netip.Addr) bool { return slices.Contains(former, a) })
		if len(fresh) > 0 {
			return fresh[0], true
		}
	}
	if len(free) == 0 {
		return netip.Addr{}, false
	}
	return free[0], true
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
