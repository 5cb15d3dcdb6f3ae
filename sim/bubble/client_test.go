package bubble

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/relay/wire"
)

// client lists once and watches, and resumes; it notes what must not be.
type client struct {
	http *http.Client

	mu      sync.Mutex
	state   map[string]uint64
	version uint64
	lists   int
	broken  string
}

func (c *client) run(ctx context.Context, url string) {
	for ctx.Err() == nil {
		if err := c.watch(ctx, url); err != nil {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

func (c *client) watch(ctx context.Context, url string) error {
	query := "?watch=1&allowWatchBookmarks=true&resourceVersion=" + wire.FormatVersion(c.version)
	if c.version == 0 {
		query = "?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/apis/discovery.k8s.io/v1/endpointslices"+query, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf")
	req.Header.Set("Authorization", "Bearer someone")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("%s: %s", resp.Status, body)
	}
	events := wire.NewEventReader(resp.Body, wire.Protobuf,
		wire.Kind{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"})
	for {
		ev, err := events.Next()
		if err != nil {
			return err
		}
		if err := c.take(ev); err != nil {
			return err
		}
	}
}

func (c *client) take(ev *wire.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ev.Type == wire.Error:
		c.version, c.state = 0, map[string]uint64{}
		return fmt.Errorf("%d", ev.Status.Code)
	case ev.Type == wire.Bookmark && ev.Version < c.version, ev.Type != wire.Bookmark && c.version > 0 &&
		ev.Version <= c.version:
		c.broken = fmt.Sprintf("%s %d after %d", ev.Type, ev.Version, c.version)
	case ev.Type == wire.Deleted:
		delete(c.state, ev.Object.Key)
	case ev.Type != wire.Bookmark:
		c.state[ev.Object.Key] = ev.Version
	}
	if ev.InitialEnd {
		c.lists++
	}
	if c.version > 0 || ev.InitialEnd {
		c.version = ev.Version
	}
	return nil
}

func (c *client) snapshot() map[string]uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := make(map[string]uint64, len(c.state))
	for k, v := range c.state {
		state[k] = v
	}
	return state
}

func (c *client) verdict() (lists int, broken string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists, c.broken
}
