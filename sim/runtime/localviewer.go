package runtime

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-edge/weir/impl/contract"
	weirpki "github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/sim/testca"
)

// viewer is the testbed's own, read-only way to coordinators of a pool. It follows the pool's authority, which
// weir-manager may replace.
type viewer struct {
	pool *localPool

	mu      sync.Mutex
	signs   string // the key of the authority that signed the certificate
	trusted *x509.CertPool
	cert    tls.Certificate
}

// viewerTime bounds how long the cloud is asked for the authority. One that is away says nothing of another.
const viewerTime = 3 * time.Second

// newViewer makes the viewer's way.
func (x *localPool) newViewer() error {
	v := &viewer{pool: x, trusted: x.authority.Pool()}
	if err := v.issue(x.authority); err != nil {
		return err
	}
	// a connection is of the authority of its time.
	x.viewer = &http.Transport{DialTLSContext: v.dial, DisableKeepAlives: x.EnrolsCoordinator || x.Places}
	return nil
}

func (v *viewer) issue(by *testca.Authority) error {
	pair, err := by.IssueTo(weirpki.Viewer, weirpki.Subject{Pool: v.pool.Name, Name: "testbed"}, 0)
	if err != nil {
		return err
	}
	v.cert, err = pair.TLS()
	return err
}

func (v *viewer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config, err := v.config(ctx)
	if err != nil {
		return nil, err
	}
	config.ServerName = host
	return (&tls.Dialer{Config: config}).DialContext(ctx, network, address)
}

func (v *viewer) config(ctx context.Context) (*tls.Config, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.pool.EnrolsCoordinator || v.pool.Places {
		if err := v.follow(ctx); err != nil {
			return nil, fmt.Errorf("the authority of pool %s: %w", v.pool.Name, err)
		}
	}
	return &tls.Config{RootCAs: v.trusted, Certificates: []tls.Certificate{v.cert}, MinVersion: tls.VersionTLS12}, nil
}

// follow reads the authority that weir-manager has now.
func (v *viewer) follow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, viewerTime)
	defer cancel()
	secret, err := v.pool.site.cloud.Client().CoreV1().Secrets(contract.KeyNamespace).Get(ctx,
		contract.AuthorityPrefix+v.pool.Name, metav1.GetOptions{})
	if err != nil {
		return nil // the cloud is away: what was is
	}
	s, err := weirpki.LoadSuccession(secret.Data)
	if err != nil {
		return err
	}
	v.trusted = x509.NewCertPool()
	for _, c := range s.Trusted() {
		v.trusted.AddCert(c)
	}
	key, err := s.Signer.KeyPEM()
	if err != nil || string(key) == v.signs {
		return err
	}
	by, err := testca.LoadAuthority(s.Signer.CertPEM(), key)
	if err != nil {
		return err
	}
	if by == nil {
		return errors.New("there is none")
	}
	v.signs = string(key)
	return v.issue(by)
}
