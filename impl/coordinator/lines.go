package coordinator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/connectivity"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/source/hop"
)

// lines lead to hubs of the pool.
type lines struct {
	*serving
	lot   *hop.Lot
	rules *authz.Rules
	clock clock.WithDelayedExecution
}

// dial opens a connection to the hub of a node that shows its relays at an address, or takes one that the hub has
// opened.
func (x *lines) dial(ctx context.Context, node, address string) (net.Conn, error) {
	switch _, reversed, err := contract.ParsePoolAddress(address); {
	case err != nil: // who holds the Lease may not have told one
		return nil, err
	case reversed:
		return x.lot.Take(ctx, node)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// to is the line to the hub of a node.
func (x *lines) to(node, address string) *hop.Line {
	var last atomic.Pointer[guarded] // a line has one connection at a time
	return hop.NewLine(hop.LineConfig{
		Name: node, Clock: x.clock,
		Dial: func(ctx context.Context) (net.Conn, error) {
			conn, err := x.dial(ctx, node, address)
			if err != nil {
				return nil, err
			}
			g := &guarded{Conn: conn}
			last.Store(g)
			return g, nil
		},
		TLS: &tls.Config{
			MinVersion:         tls.VersionTLS13,
			InsecureSkipVerify: true, //nolint:gosec // a hub is known by its node, not by an address: see demand
			VerifyConnection: func(s tls.ConnectionState) error {
				if err := x.demand(node, s.PeerCertificates); err != nil {
					return err
				}
				g := last.Load()
				forget := x.denied.Guard(s.PeerCertificates[0], func(error) { _ = g.Conn.Close() })
				g.forget.Store(&forget)
				return nil
			},
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return x.certificate() },
		},
	})
}

// call opens a connection to the hub of a node, has a request answered, and closes it. stage is how far it came.
func (x *lines) call(ctx context.Context, node, address string) (stage connectivity.Stage, err error) {
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return connectivity.Nothing, err
	}
	defer raw.Close()
	conn := tls.Client(raw, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"},
		CurvePreferences:     []tls.CurveID{tls.X25519, tls.CurveP256}, // a small handshake
		InsecureSkipVerify:   true,                                     //nolint:gosec // likewise
		VerifyConnection:     func(s tls.ConnectionState) error { return x.demand(node, s.PeerCertificates) },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return x.certificate() },
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		return connectivity.Connected, err
	}
	return connectivity.Secured, connectivity.Attempt(ctx, conn, contract.StatusPath)
}

// demand tells why who answers is not the hub of a node of this pool. One whose certificate has ended feeds nothing.
func (x *lines) demand(node string, chain []*x509.Certificate) error {
	switch late, err := x.verify(chain); {
	case err != nil:
		return err
	case late:
		return fmt.Errorf("its certificate has ended at %s", chain[0].NotAfter.UTC())
	}
	name := chain[0].Subject
	switch who, why := x.rules.HubOf(&user.DefaultInfo{Name: name.CommonName, Groups: name.Organization}); {
	case why != "":
		return errors.New(why)
	case who != node:
		return fmt.Errorf("it is the hub of node %s, not of %s: %w", who, node, connectivity.ErrStranger)
	}
	return nil
}

// guarded is a connection to a hub that ends when the hub's certificate is revoked.
type guarded struct {
	net.Conn
	forget atomic.Pointer[func()]
}

// Close implements net.Conn.
func (g *guarded) Close() error {
	if forget := g.forget.Swap(nil); forget != nil {
		(*forget)()
	}
	return g.Conn.Close()
}
