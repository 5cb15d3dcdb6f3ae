package thief

import (
	"context"
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/sim/audit"
	"github.com/weir-edge/weir/sim/runtime"
	"github.com/weir-edge/weir/sim/testca"
)

// Of reads the disk of a node of a pool that enrols. others are the nodes beside it whose hubs run.
func Of(ctx context.Context, site runtime.Site, pool, node string, others ...string) (*Thief, error) {
	vault, ok := site.(runtime.Vault)
	if !ok {
		return nil, errors.New("this runtime does not give away keys of nodes")
	}
	authority, err := vault.Authority(pool)
	if err != nil {
		return nil, err
	}
	kept, err := vault.Kept(runtime.HubOf(node))
	if err != nil {
		return nil, err
	}
	cloud := vault.Cloud()
	c := Config{Pool: pool, Node: node, PoolRoots: authority.Pool(), CloudRoots: cloud.CA().Pool(), CloudURL: cloud.URL()}
	if c.Hub, err = steal(filepath.Join(kept, "pki", string(weirpki.Hub)+".pem")); err != nil {
		return nil, err
	}
	if c.Cloud, err = atCloud(vault, pool, node); err != nil {
		return nil, err
	}
	first, err := vault.Coordinator(pool)
	if err != nil {
		return nil, err
	}
	c.Coordinators = []string{first}
	for _, other := range others {
		e, err := site.Endpoint(other, "")
		if err != nil {
			return nil, err
		}
		u, err := url.Parse(e.URL)
		if err != nil {
			return nil, err
		}
		c.Peers = append(c.Peers, net.JoinHostPort(u.Hostname(), strconv.Itoa(contract.HubPoolPort)))
	}
	return New(ctx, c)
}

// atCloud are the certificates by which kube-apiserver knows a node: as itself, and its hub as a user of its own.
func atCloud(vault runtime.Vault, pool, node string) (map[string]*testca.Pair, error) {
	asNode, err := vault.Cloud().KubeletCertificate(node, 0)
	if err != nil {
		return nil, err
	}
	asHub, err := vault.Cloud().HubCertificate(pool, node, 0)
	return map[string]*testca.Pair{"node": asNode, "hub": asHub}, err
}

// as is how somebody with a certificate reaches kube-apiserver.
func as(vault runtime.Vault, p *testca.Pair) *rest.Config {
	c := &rest.Config{Host: vault.Cloud().URL(), QPS: -1, UserAgent: audit.Thief, WarningHandler: rest.NoWarnings{}}
	c.CAData, c.CertData, c.KeyData = vault.Cloud().CA().CertPEM(), p.CertPEM, p.KeyPEM
	return c
}
