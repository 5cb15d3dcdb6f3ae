package coordinator

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/role"
	"github.com/weir-edge/weir/impl/source/hop"
)

// Replica is one replica of the pool's coordinator as this hub reaches it, or one leader hub in a pool without a
// coordinator.
type Replica struct {
	Server
	Transport *uplink.Transport
	connect   func(context.Context) (net.Conn, error) // one of its own, over which HTTP/1.1 is spoken
	Upstream  *hop.Upstream
	resume    *uplink.Sessions
	refused   func() // see Config; nil: it is ignored
}

// pings find out that nobody answers any more: after a silence, for which answer.
type pings struct{ after, answer time.Duration }

var (
	coordinatorPing = pings{3 * time.Second, 3 * time.Second}
	// Nobody takes a leader hub's place but who reads it: what a Lease does with a coordinator, its readers do by this.
	leaderHubPing = pings{500 * time.Millisecond, 1500 * time.Millisecond}
)

func newReplica(cfg Config, at Server, from *atomic.Pointer[string], meter *uplink.Meter) *Replica {
	r, u, ping := &Replica{Server: at, resume: uplink.NewSessions(), refused: cfg.Refused}, at.URL, coordinatorPing
	if at.Node != "" {
		ping = leaderHubPing
	}
	by := func(protocol string) *uplink.Dialer {
		d := cfg.dialer(at, &notingNet{cfg.Net, from}, meter, protocol)
		d.TLS.ClientSessionCache = r.resume
		return d
	}
	r.Transport = uplink.NewTransport(func() *http.Transport {
		// Inside the pool bytes are cheap, and a dead coordinator should be noticed soon.
		return uplink.TransportConfig{Dialer: by("h2"), IdlePing: ping.after, PingTimeout: ping.answer}.Build()
	})
	r.connect = func(ctx context.Context) (net.Conn, error) {
		return by("http/1.1").Connect(ctx, "tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	}
	r.Upstream = &hop.Upstream{
		Name: role.Coordinator.String(), URL: u, Client: uplink.Client(r.Transport), Progress: true, OnBytes: cfg.OnBytes,
	}
	return r
}

// dialer opens connections to a server.
func (cfg Config) dialer(at Server, by uplink.Dials, meter *uplink.Meter, protocol string) *uplink.Dialer {
	return &uplink.Dialer{
		Net: by, Meter: meter, Denied: cfg.Denied, Verify: cfg.verify(at), TLS: &tls.Config{
			RootCAs: cfg.Roots.Get(), MinVersion: tls.VersionTLS13, NextProtos: []string{protocol},
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return uplink.Held(cfg.Cert) },
		},
	}
}

// verify judges who answers at an address. The coordinator is read on with a certificate that has ended while the cloud
// is away; nil: as TLS does.
func (cfg Config) verify(at Server) func(host string, chain []*x509.Certificate) error {
	if at.Node != "" {
		return func(_ string, chain []*x509.Certificate) error { return at.demand(cfg, chain) }
	}
	if cfg.Late == nil {
		return nil
	}
	return func(host string, chain []*x509.Certificate) error {
		_, err := cfg.Late.Verify(chain, x509.VerifyOptions{
			Roots: cfg.Roots.Get(), DNSName: host, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		return err
	}
}

// at is where something is at this replica.
func (r *Replica) at(uri string) string { return strings.TrimSuffix(r.URL.String(), "/") + uri }

// soon finds out that the machine at the other end of a silent connection is gone.
func soon() net.KeepAliveConfig {
	return net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}
}

// notingNet notes where connections come from.
type notingNet struct {
	uplink.Dials
	from *atomic.Pointer[string]
}

func (n *notingNet) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := n.Dials.DialContext(ctx, network, address)
	if err == nil {
		if t, ok := c.(interface {
			SetKeepAliveConfig(net.KeepAliveConfig) error
		}); ok {
			_ = t.SetKeepAliveConfig(soon())
		}
		if host, _, err := net.SplitHostPort(c.LocalAddr().String()); err == nil {
			n.from.Store(&host)
		}
	}
	return c, err
}

// maxAnswer bounds an answer that is read as a whole, in bytes.
const maxAnswer = 1 << 20

// sees minds that a replica knows this hub no more.
func (r *Replica) sees(code int) {
	if code == http.StatusUnauthorized && r.refused != nil {
		r.refused()
	}
}

// Do sends a request to this replica, as Client.Do does to the one in use.
func (r *Replica) Do(ctx context.Context, method, uri string, in, out any) (code int, err error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return 0, err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.at(uri), body)
	if err != nil {
		return 0, err
	}
	req.Header.Set("User-Agent", contract.UserAgent)
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.Transport.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, err
	}
	r.sees(resp.StatusCode)
	if resp.StatusCode > 299 {
		var s metav1.Status
		_ = json.Unmarshal(answer, &s)
		return resp.StatusCode, fmt.Errorf("%s %s: %s %s", method, uri, resp.Status, s.Message)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			return 0, fmt.Errorf("%s %s: %w", method, uri, err)
		}
	}
	return resp.StatusCode, nil
}
