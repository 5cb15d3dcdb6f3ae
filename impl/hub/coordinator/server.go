package coordinator

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/fnv"
	"net/url"
	"slices"

	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/contract"
)

// Server is where a hub asks what its pool has: a replica of the coordinator, or a leader hub in a pool without one.
type Server struct {
	URL *url.URL
	// Node of a leader hub, by which its certificate is known; "": it is a coordinator, known by its address.
	Node string
}

// At are the replicas of a coordinator.
func At(urls ...*url.URL) (all []Server) {
	for _, u := range urls {
		all = append(all, Server{URL: u})
	}
	return all
}

func (s Server) key() string { return s.Node + "@" + s.URL.Host }

// Prefer puts servers in the order in which a node prefers them. Nodes divide among them, and if one comes or goes,
// only those nodes change that preferred it: each node takes the server for which a hash of both names is largest.
func Prefer(node string, servers []Server) []Server {
	weight := func(s Server) uint64 {
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(node + "\x00" + cmp.Or(s.Node, s.URL.Host)))
		x := sum.Sum64() // the last letters move the low bits of FNV only
		x ^= x >> 33
		x *= 0xff51afd7ed558ccd
		x ^= x >> 33
		x *= 0xc4ceb9fe1a85ec53
		return x ^ x>>33
	}
	return slices.SortedFunc(slices.Values(servers), func(a, b Server) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.key(), b.key()))
	})
}

// demand tells why who answers is not the leader hub of a node of this pool.
func (s Server) demand(cfg Config, chain []*x509.Certificate) error {
	o := x509.VerifyOptions{Roots: cfg.Roots.Get(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	var err error
	switch {
	case len(chain) == 0:
		return errors.New("a leader hub has to show a certificate of the pool")
	case cfg.Late != nil:
		_, err = cfg.Late.Verify(chain, o)
	default:
		_, err = chain[0].Verify(o)
	}
	if err != nil {
		return err
	}
	switch name := chain[0].Subject; {
	case name.CommonName != contract.NodeUserPrefix+s.Node:
		return fmt.Errorf("%q answers at %s, want the hub of node %s: %w", name.CommonName, s.URL.Host, s.Node,
			connectivity.ErrStranger)
	case !slices.Contains(name.Organization, contract.PoolGroupPrefix+cfg.Pool),
		!slices.Contains(name.Organization, contract.HubGroup):
		return fmt.Errorf("%q answers at %s, want a hub of pool %s: %w", name.CommonName, s.URL.Host, cfg.Pool,
			connectivity.ErrStranger)
	}
	return nil
}
