package pooldoor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/source/hop"
	"github.com/weir-edge/weir/impl/trust"
)

// Config is what a door is made of.
type Config struct {
	*hop.Server
	Node, Pool   string
	Coordinators func() []*url.URL // at which the pool's coordinator is met; none: there is none
	Roots        uplink.Authorities
	Denied       *trust.HeldDenylist // certificates of the pool that are no longer valid
	Cert         uplink.Certificate
	Late         *pki.Allowance // judges certificates
	Desk         *Desk
	Clock        clock.WithDelayedExecution
}

// Door is the port for the pool.
type Door struct {
	Config
	Listener net.Listener
	Notices  *Notices
}

// TLS lets in whom the door lets in.
func (d *Door) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, ClientAuth: tls.RequireAnyClientCert,
		DynamicRecordSizingDisabled: true,
		GetCertificate:              func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return uplink.Held(d.Cert) },
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := d.who(s.PeerCertificates)
			return err
		},
	}
}

// who tells why somebody is neither the coordinator of this pool nor one of its hubs, and which of them it is.
func (d *Door) who(chain []*x509.Certificate) (coordinator bool, err error) {
	if len(chain) == 0 {
		return false, errors.New("a certificate of the pool is needed")
	}
	cert := chain[0]
	vouched := func(usage x509.ExtKeyUsage) error {
		// late or not: here is nothing but to read.
		_, err := d.Late.Verify(chain, x509.VerifyOptions{Roots: d.Roots.Get(), KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	if slices.ContainsFunc(d.Coordinators(), func(u *url.URL) bool { return cert.VerifyHostname(u.Hostname()) == nil }) &&
		vouched(x509.ExtKeyUsageServerAuth) == nil {
		return true, nil
	}
	groups := cert.Subject.Organization
	if !slices.Contains(groups, contract.PoolGroupPrefix+d.Pool) || !slices.Contains(groups, contract.HubGroup) ||
		!strings.HasPrefix(cert.Subject.CommonName, contract.NodeUserPrefix) {
		return false, fmt.Errorf("%q is neither the coordinator of pool %s nor one of its hubs", cert.Subject.CommonName,
			d.Pool)
	}
	return false, vouched(x509.ExtKeyUsageClientAuth)
}

// Hub tells why a certificate is not that of a hub of this pool.
func (d *Door) Hub(chain []*x509.Certificate) error {
	if coordinator, err := d.who(chain); err != nil || !coordinator {
		return err
	}
	return errors.New("a coordinator has no pods")
}

// ServeHTTP implements http.Handler. No answer outlives the certificate of the one that asked: it ends when that has
// expired, or is revoked.
func (d *Door) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	coordinator, err := d.who(req.TLS.PeerCertificates)
	if err != nil || req.URL.Path == contract.PulsePath && !coordinator {
		http.Error(w, fmt.Sprint("not for you: ", err), http.StatusForbidden)
		return
	}
	leave, ok := d.Desk.Enter(req)
	if !ok {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests of this peer, or of all, are under way", http.StatusTooManyRequests)
		return
	}
	defer leave()
	ctx, end := d.Late.While(req.Context(), d.Clock, req.TLS.PeerCertificates[0])
	defer end()
	defer d.Denied.Guard(req.TLS.PeerCertificates[0], func(error) { end() })()
	d.Server.ServeHTTP(w, req.WithContext(ctx))
}
