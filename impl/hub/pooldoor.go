package hub

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/denylist"
	"github.com/weir-edge/weir/impl/hub/uplink"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/source/hop"
)

// poolDoor is where a hub shows to its pool what it holds, at --pool-port: its relays, how they are, and documents. It shows all of a relay to whoever comes in,
// so it lets in nobody but hubs of the pool, which may read the same at the coordinator, and the coordinator: that is who could be met
// at --coordinator-server. Both are known by the pool's authority.
type poolDoor struct {
	*hop.Server
	node, pool   string
	coordinators []*url.URL
	roots        uplink.Authorities
	denied       *denylist.Held // certificates of the pool that count no more
	cert         uplink.Certificate
	listener     net.Listener
	address      string // that was given; "": it is found out
	local        func() string
	late         *pki.Allowance // judges certificates
	clock        clock.WithDelayedExecution
}

// told is the address at which the pool reaches this hub, "" if that is not known yet: if none was given, it is the one that is listened on, or else
// where this hub is when it asks the coordinator.
func (d *poolDoor) told() string {
	at, err := netip.ParseAddrPort(d.listener.Addr().String())
	switch {
	case d.address != "":
		return d.address
	case err != nil:
		return ""
	case !at.Addr().IsUnspecified():
		return at.String()
	}
	host, err := netip.ParseAddr(d.local())
	if err != nil {
		return ""
	}
	return net.JoinHostPort(host.Unmap().WithZone("").String(), strconv.Itoa(int(at.Port())))
}

func (d *poolDoor) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}, ClientAuth: tls.RequireAnyClientCert, DynamicRecordSizingDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return uplink.Held(d.cert) },
		VerifyConnection: func(s tls.ConnectionState) error {
			_, err := d.who(s.PeerCertificates)
			return err
		},
	}
}

// who tells why somebody is neither the coordinator of this pool nor one of its hubs, and which of them it is.
func (d *poolDoor) who(chain []*x509.Certificate) (coordinator bool, err error) {
	if len(chain) == 0 {
		return false, errors.New("a certificate of the pool is needed")
	}
	cert := chain[0]
	vouched := func(usage x509.ExtKeyUsage) error {
		_, err := d.late.Verify(chain, x509.VerifyOptions{Roots: d.roots.Get(), KeyUsages: []x509.ExtKeyUsage{usage}}) // late or not: here is nothing but to read
		return err
	}
	if slices.ContainsFunc(d.coordinators, func(u *url.URL) bool { return cert.VerifyHostname(u.Hostname()) == nil }) && vouched(x509.ExtKeyUsageServerAuth) == nil {
		return true, nil
	}
	groups := cert.Subject.Organization
	if !slices.Contains(groups, contract.PoolGroupPrefix+d.pool) || !slices.Contains(groups, contract.HubGroup) || !strings.HasPrefix(cert.Subject.CommonName, contract.NodeUserPrefix) {
		return false, fmt.Errorf("%q is neither the coordinator of pool %s nor one of its hubs", cert.Subject.CommonName, d.pool)
	}
	return false, vouched(x509.ExtKeyUsageClientAuth)
}

// ServeHTTP implements http.Handler. No answer outlives the certificate of who asked: it ends when that has expired, or is taken back.
func (d *poolDoor) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	coordinator, err := d.who(req.TLS.PeerCertificates)
	if err != nil || req.URL.Path == contract.PulsePath && !coordinator {
		http.Error(w, fmt.Sprint("not for you: ", err), http.StatusForbidden)
		return
	}
	ctx, end := d.late.While(req.Context(), d.clock, req.TLS.PeerCertificates[0])
	defer end()
	defer d.denied.Guard(req.TLS.PeerCertificates[0], func(error) { end() })()
	d.Server.ServeHTTP(w, req.WithContext(ctx))
}
