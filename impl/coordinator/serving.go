package coordinator

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/coordinator/authz"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// serving is what is taken before the server starts: the port and the files of credentials.
type serving struct {
	listener *authz.Callers
	denied   *trust.HeldDenylist // certificates of the pool that are no longer valid
	time     *pki.Proven         // by which certificates are judged
	late     *pki.Allowance      // for those that have ended
	cert     dynamiccertificates.CertKeyContentProvider
	ca       *authorities
}

// loadCredentials reads the files once, for clear errors; later changes are followed by dynamiccertificates.
func loadCredentials(set *settings) (s serving, err error) {
	file := set.servingFile
	if _, err := disk.ReadFile(file, pki.MaxPEM); err != nil {
		return s, cli.Usage("--certificates-dir", file, err.Error())
	}
	if _, err := tls.LoadX509KeyPair(file, file); err != nil {
		return s, cli.Usage("--certificates-dir", file, "a PEM file of a key and its certificate: "+err.Error())
	}
	ca, err := disk.ReadFile(set.caFile, pki.MaxPEM)
	if err != nil {
		return s, cli.Usage("--certificates-dir", set.caFile, err.Error())
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return s, cli.Usage("--certificates-dir", set.caFile, "a PEM file with at least one certificate")
	}
	if s.cert, err = dynamiccertificates.NewDynamicServingContentFromFiles("serving", file, file); err != nil {
		return s, cli.Usage("--certificates-dir", file, err.Error())
	}
	content, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", set.caFile)
	if err != nil {
		return s, cli.Usage("--certificates-dir", set.caFile, err.Error())
	}
	s.ca = &authorities{DynamicFileCAContent: content}
	return s, nil
}

func listen(set *settings, denied *trust.HeldDenylist) (*authz.Callers, error) {
	l, err := cli.OpenPort(set.BindAddress, set.SecurePort,
		cli.Usage("--bind-address", set.BindAddress, "an IP address of this machine"))
	if err != nil {
		return nil, err
	}
	return authz.Listen(l, denied), nil
}

// overhearEvery is how often it is looked what the hub of this machine has heard of the time.
const overhearEvery = 10 * time.Second

// overhear takes the cloud's time from the hub of this machine: a coordinator does not hear the cloud itself, and who
// has stolen the pool's key signs certificates that begin when he likes.
func (s *serving) overhear(certificatesDir string) {
	if certificatesDir != "" {
		s.time.Overhear(filepath.Join(certificatesDir, pki.CloudTimeFile))
	}
}

// learn takes the time that the certificate of this coordinator itself proves.
func (s *serving) learn() {
	pair, err := s.certificate()
	if opts, ok := s.ca.VerifyOptions(); ok && err == nil {
		s.time.Learn([]*x509.Certificate{pair.Leaf}, opts.Roots)
	}
}

// verify reports whether somebody of the pool has proved by a certificate, leaf first, who it is. late: its certificate
// has ended, and counts to read.
func (s *serving) verify(chain []*x509.Certificate) (late bool, err error) {
	opts, ok := s.ca.VerifyOptions()
	if !ok || len(chain) == 0 {
		return false, errors.New("no certificate, or no authority of the pool")
	}
	return s.late.Verify(chain, opts)
}

// lasts is a request that ends when the certificate of its caller is no longer valid.
func (s *serving) lasts(req *http.Request, c clock.WithDelayedExecution) (*http.Request, func()) {
	if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 {
		return req, func() {}
	}
	ctx, end := s.late.While(req.Context(), c, req.TLS.PeerCertificates[0])
	return req.WithContext(ctx), end
}

// certificate is the one by which this coordinator is known now.
func (s *serving) certificate() (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(s.cert.CurrentCertKeyContent())
	return &pair, err
}
