package coordinator

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator/store"
	"github.com/weir-edge/weir/impl/pki"
)

// meet takes the port at which the etcds of other replicas come in. s judges them as it judges all others, and cloud
// reports whether there is a sign of the cloud.
//
// A replica whose certificate has ended goes on among the others while who judges it has no sign of the cloud, or has
// not renewed its own: otherwise a pool that was away for long could not write the Leases of its nodes, and three
// replicas would be worse than one. Nobody leads or feeds by that. What goes through etcd was allowed at the API of a
// replica, by the certificate of the one that asked there. While one after the other is renewed there is a majority at
// any time: those who are not renew yet take all others, and if those who are do not take them, there are two of one
// kind.
func (p *peers) meet(s *serving, dir string, cloud func() bool) (err error) {
	if p == nil {
		return nil
	}
	p.serving = s
	late := &pki.Allowance{
		Time: s.time, For: s.late.For, Refuse: s.denied.Refuse, Logger: p.logger,
		Cloud: func() bool { return cloud() && p.renewed() },
	}
	p.mesh, err = store.NewMesh(store.MeshConfig{
		Self: p.self, Replicas: p.Meets(), Listen: p.set.peerAddress, Dir: filepath.Join(dir, "mesh"),
		Certificate: p.certificate, NameOf: p.NameOf,
		Verify: func(name, host string, chain []*x509.Certificate) error {
			if is := p.NameOf(chain[0]); is != name {
				return fmt.Errorf("the certificate is of %q, and that of replica %s was expected", chain[0].Subject.CommonName,
					name)
			}
			opts := x509.VerifyOptions{
				Roots: p.roots(), DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
			}
			if host != "" {
				opts.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
			}
			_, err := late.Verify(chain, opts)
			return err
		},
		Changes: func() []<-chan struct{} { return []<-chan struct{}{s.denied.Changed(), s.ca.held.Changed()} },
		// Before the API is served nobody else reads the file again, and it is not served before there is a majority.
		Refresh: func(ctx context.Context) { _ = s.ca.RunOnce(ctx) },
		Clock:   p.set.Clock, Logger: p.logger,
	})
	at := p.set.peerAddress
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("listen on %s: %w: stop the other process, or choose another address in --initial-cluster", at,
			syscall.EADDRINUSE)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return cli.Usage("--initial-cluster", at, "an address of this machine for this replica")
	case err != nil:
		return fmt.Errorf("listen on %s: %w", at, err)
	}
	return nil
}

// renewed reports whether the certificate of this replica has not ended.
func (p *peers) renewed() bool {
	pair, err := p.certificate()
	return err != nil || !p.serving.time.Now().After(pair.Leaf.NotAfter)
}

// start lets the etcds of other replicas come in.
func (p *peers) start() error {
	if p == nil {
		return nil
	}
	if err := p.mesh.Start(); err != nil {
		return fmt.Errorf("connect the etcds of replicas: %w", err)
	}
	return nil
}
