package store

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/weir-edge/weir/impl/contract"
)

// idle is after what time a connection ends over which nothing goes.
const idle = 30 * time.Second

// way is a connection to another replica, and those in its place if it breaks.
type way struct {
	config    *MeshConfig
	links     *links
	name      string
	to        *url.URL
	transport *http.Transport

	mu           sync.Mutex
	theirs, ours string // certificates by which both ends were known at the last connection, see short; "": there was none
}

func newWay(c *MeshConfig, l *links, name string, to *url.URL) *way {
	w := &way{config: c, links: l, name: name, to: to}
	w.transport = &http.Transport{
		DialTLSContext:    w.dial,
		ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: MeshSilence, PingTimeout: MeshSilence, WriteByteTimeout: 2 * MeshSilence,
		},
		IdleConnTimeout:    idle,
		DisableCompression: true,
	}
	return w
}

// short names a certificate.
func short(der []byte) string {
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:8])
}

// dial opens a connection to the replica.
func (w *way) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*connect) // TCP, and TLS
	defer cancel()
	raw, err := (&net.Dialer{Timeout: connect}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	ours := ""
	l := &link{Conn: raw, links: w.links}
	conn := tls.Client(l, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, ServerName: w.to.Hostname(),
		InsecureSkipVerify: true, // it is verified here, by the time that was proved
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := w.config.Certificate()
			if err == nil {
				ours = short(pair.Certificate[0])
			}
			return pair, err
		},
		VerifyConnection: func(s tls.ConnectionState) error {
			return l.admit(w.name, s.PeerCertificates, func() error {
				return w.config.Verify(w.name, w.to.Hostname(), s.PeerCertificates)
			})
		},
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = l.Close()
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.theirs, w.ours = short(conn.ConnectionState().PeerCertificates[0].Raw), ours
	return conn, nil
}

func (w *way) certificates() (theirs, ours string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.theirs, w.ours
}

// ask tells which certificate the replica shows to those who connect now.
func (w *way) ask(ctx context.Context) (shows string, err error) {
	ctx, cancel := context.WithTimeout(ctx, MeshSilence)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.to.JoinPath(contract.MeshPath).String(), nil)
	if err != nil {
		return "", err
	}
	resp, err := w.transport.RoundTrip(req)
	if err != nil {
		return "", err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusNoContent {
		return "", fmt.Errorf("it answers %s", resp.Status)
	}
	return resp.Header.Get(contract.MeshCertificate), nil
}
