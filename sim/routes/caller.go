package routes

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-edge/weir/sim/runtime"
)

const (
	callEvery    = 200 * time.Millisecond
	callPatience = time.Second
	maxAnswer    = 1 << 10
)

// Caller calls Services one after the other as kube-proxy would lead it: each call goes to the next endpoint that its
// watcher shows as ready.
type Caller struct {
	watcher  *Watcher
	services map[string][]string // which pods may answer
	names    []string            // of the services
	failure  func(error)         // told of each call that failed
	client   http.Client
	next     int

	mu            sync.Mutex
	calls, failed int
}

// NewCaller returns one that calls these Services. failure is told of each call that failed.
func NewCaller(w *Watcher, services map[string][]string, failure func(error)) *Caller {
	return &Caller{
		watcher: w, services: services, names: slices.Sorted(maps.Keys(services)), failure: failure,
		client: NewClient(callPatience),
	}
}

// NewClient returns a client that opens a connection for each call.
func NewClient(patience time.Duration) http.Client {
	return http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
}

// Run calls until ctx ends.
func (c *Caller) Run(ctx context.Context) {
	t := time.NewTicker(callEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		err := c.call(ctx)
		if ctx.Err() != nil {
			return
		}
		c.mu.Lock()
		c.calls++
		if err != nil {
			c.failed++
		}
		c.mu.Unlock()
		if err != nil {
			c.failure(err)
		}
	}
}

// Count is how many calls there were, and how many failed.
func (c *Caller) Count() (calls, failed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls, c.failed
}

func (c *Caller) call(ctx context.Context) error {
	c.next++
	service := c.names[c.next%len(c.names)]
	addresses, err := c.watcher.Ready(service)
	if err != nil {
		return fmt.Errorf("call %s: %w", service, err)
	}
	address := addresses[c.next/len(c.names)%len(addresses)]
	name, err := Ask(ctx, &c.client, address)
	if err != nil {
		return fmt.Errorf("call %s: %w", service, err)
	}
	if slices.Contains(c.services[service], name) {
		return nil
	}
	return fmt.Errorf("call %s: %s answers at %s, which is not of that Service", service, name, address)
}

// Ask asks a pod for its name.
func Ask(ctx context.Context, client *http.Client, address string) (name string, err error) {
	address = net.JoinHostPort(runtime.DialAddress(address), strconv.Itoa(runtime.PodPort))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", address, resp.Status)
	}
	return strings.TrimSpace(string(body)), err
}
