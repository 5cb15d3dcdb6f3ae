package runtime

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/sim/testca"
)

var (
	_ Issuer = (*localSite)(nil)
	_ Signer = (*localSite)(nil)
)

// Sign implements Signer.
func (s *localSite) Sign(r testca.Request) (*testca.Pair, error) { return s.cloud.CA().Issue(r) }

// Certify implements Issuer.
func (s *localSite) Certify(node string, life time.Duration) (*rest.Config, error) {
	x, err := s.poolOf(node)
	if err != nil {
		return nil, err
	}
	dir, err := s.spawner.Scratch(x.Name, node)
	if err != nil {
		return nil, err
	}
	pair, err := s.cloud.KubeletCertificate(node, life)
	if err != nil {
		return nil, err
	}
	if _, err := testca.WriteBoth(dir, hubPair, pair); err != nil {
		return nil, err
	}
	return x.kubeletIn(node, life, "machine")
}

// Stray implements Issuer.
func (s *localSite) Stray(node string, life time.Duration) (*rest.Config, error) {
	x, err := s.poolOf(node)
	if err != nil {
		return nil, err
	}
	return x.kubeletIn(node, life, "stray")
}

// Retime implements Issuer.
func (s *localSite) Retime(token string, end time.Time) (string, error) {
	return s.cloud.Retime(token, end)
}

// kubeletIn writes the kubeconfig of a node's kubelet, or of who pretends to be one.
func (x *localPool) kubeletIn(node string, life time.Duration, folder string) (*rest.Config, error) {
	dir, err := x.site.spawner.Scratch(x.Name, node, folder)
	if err != nil {
		return nil, err
	}
	config, _, err := x.kubeletConfig(dir, node, life)
	return config, err
}

func (s *localSite) poolOf(node string) (*localPool, error) {
	for _, x := range s.pools {
		if slices.Contains(x.NodeNames(), node) {
			return x, nil
		}
	}
	return nil, fmt.Errorf("there is no node %q", node)
}
