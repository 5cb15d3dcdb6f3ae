package mesh

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/weir-edge/weir/impl/contract"
)

// out is the way from the etcd of this replica to another one.
type out struct {
	mesh      *Mesh
	name      string
	to        *url.URL
	transport *http.Transport
}

func (m *Mesh) newOut(name string, to *url.URL) *out {
	o := &out{mesh: m, name: name, to: to}
	o.transport = &http.Transport{
		DialTLSContext:     o.dial,
		ForceAttemptHTTP2:  true,
		HTTP2:              &http.HTTP2Config{SendPingTimeout: Silence, PingTimeout: Silence, WriteByteTimeout: 2 * Silence},
		DisableCompression: true,
	}
	return o
}

// dial opens a connection to the replica.
func (o *out) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*connect) // TCP, and TLS
	defer cancel()
	raw, err := (&net.Dialer{Timeout: connect}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: raw, links: &o.mesh.links}
	conn := tls.Client(l, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, ServerName: o.to.Hostname(),
		InsecureSkipVerify:   true, // it is verified here, by the time that was proved
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return o.mesh.Certificate() },
		VerifyConnection: func(s tls.ConnectionState) error {
			return l.admit(o.name, s.PeerCertificates, func() error { return o.mesh.Verify(o.name, o.to.Hostname(), s.PeerCertificates) })
		},
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = l.Close()
		return nil, err
	}
	return conn, nil
}

// handler hands what etcd asks of the replica on.
func (o *out) handler() http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = o.to.Scheme, o.to.Host, ""
		},
		Transport:     o.transport,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			o.mesh.Logger.Debug("another replica is not reached", "replica", o.name, "err", err)
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
		ErrorLog: o.mesh.quietly(),
	}
}

// Meshed tells whether all other replicas are met over a mesh, now. Those of before let their etcds do TLS.
func (m *Mesh) Meshed(ctx context.Context) error {
	for name, o := range m.outs {
		if err := o.ask(ctx); err != nil {
			return fmt.Errorf("replica %s: %w", name, err)
		}
	}
	return nil
}

func (o *out) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Silence)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, o.to.JoinPath(contract.MeshPath).String(), nil)
	if err != nil {
		return err
	}
	resp, err := o.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}
