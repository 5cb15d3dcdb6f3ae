package store

import (
	"crypto/x509"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Replicas are the replicas as they are now. It is safe for concurrent use.
type Replicas struct {
	pool, self string
	client     *http.Client

	mu        sync.Mutex
	members   []Replica
	upstreams map[string]*hop.Upstream // the others, by name
}

// NewReplicas makes that of a replica of a pool, who asks the others by a client.
func NewReplicas(pool, self string, client *http.Client, members []Replica) *Replicas {
	s := &Replicas{pool: pool, self: self, client: client}
	s.Take(members)
	return s
}

// Take takes that the replicas are others, or are somewhere else, from now on.
func (s *Replicas) Take(members []Replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.upstreams
	s.members, s.upstreams = members, map[string]*hop.Upstream{}
	for _, m := range members {
		switch up := was[m.Name]; {
		case m.Name == s.self:
		case up != nil && *up.URL == *m.API:
			s.upstreams[m.Name] = up
		default:
			s.upstreams[m.Name] = &hop.Upstream{Name: "replica " + m.Name, URL: m.API, Client: s.client, Progress: true}
		}
	}
}

// Others are the other replicas, by name.
func (s *Replicas) Others() map[string]*hop.Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.upstreams)
}

// Upstream is another replica; nil: there is none of that name.
func (s *Replicas) Upstream(name string) *hop.Upstream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.upstreams[name]
}

// Now are all replicas.
func (s *Replicas) Now() []Replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.members)
}

// Meets are where the etcds of all replicas meet, by name.
func (s *Replicas) Meets() map[string]*url.URL {
	all := map[string]*url.URL{}
	for _, m := range s.Now() {
		all[m.Name] = m.Peer
	}
	return all
}

// NameOf is the replica that a certificate claims to be of; "": none of those of now.
func (s *Replicas) NameOf(c *x509.Certificate) string {
	for _, m := range s.Now() {
		if c.Subject.CommonName == contract.ReplicaUser(s.pool, m.Name) {
			return m.Name
		}
	}
	return ""
}
