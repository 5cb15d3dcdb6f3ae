package coordinator

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// Bounds of Peers.
const (
	maxPeers = 64              // connections to other members
	peerIdle = 5 * time.Minute // after which one that nobody used is closed
)

// Peers are other hubs of the pool, which are known by their certificates, and read at their pool ports. Any number may
// use it. It starts no goroutine.
type Peers struct {
	client *Client

	mu sync.Mutex
	of map[string]*peer
}

type peer struct {
	replica *Replica
	used    time.Time
	reads   int
}

// NewPeers makes the way to them, with the certificate and the denylist of a client.
func NewPeers(c *Client) *Peers { return &Peers{client: c, of: map[string]*peer{}} }

// Open sends a request without a body to the hub of a node. done is to be called when the answer has been read.
func (p *Peers) Open(ctx context.Context, node, address, method, path string, header http.Header) (resp *http.Response,
	done func(), err error) {
	at, reverse, err := contract.ParsePoolAddress(address)
	if err != nil || reverse {
		return nil, nil, fmt.Errorf("node %.80q cannot be reached at %.80q", node, address)
	}
	r, done, err := p.take(Server{URL: &url.URL{Scheme: "https", Host: at.String()}, Node: node})
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, r.at(path), nil)
	if err == nil {
		req.Header = header.Clone()
		req.Header.Set("User-Agent", contract.UserAgent)
		resp, err = r.Transport.RoundTrip(req)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return resp, done, nil
}

// take finds the connection to a hub, and closes those that nobody uses.
func (p *Peers) take(s Server) (r *Replica, done func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.client.Clock.Now()
	for key, have := range p.of {
		if have.reads == 0 && now.Sub(have.used) > peerIdle {
			have.replica.Transport.Close()
			delete(p.of, key)
		}
	}
	have := p.of[s.key()]
	if have == nil {
		if len(p.of) >= maxPeers {
			return nil, nil, fmt.Errorf("%d members of the pool are read from, which are all that there may be", maxPeers)
		}
		have = &peer{replica: newReplica(p.client.Config, s, &p.client.from, &p.client.Meter)}
		p.of[s.key()] = have
	}
	have.reads, have.used = have.reads+1, now
	return have.replica, sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		have.reads, have.used = have.reads-1, p.client.Clock.Now()
	}), nil
}

// Close closes all connections.
func (p *Peers) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, have := range p.of {
		have.replica.Transport.Close()
		delete(p.of, key)
	}
}
