package coordinator

import (
	"crypto/x509"
	"path/filepath"

	kx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/trust"
)

// authorities are those of the pool as they are now: of the file that was given, until somebody has brought a trust
// bundle. It is what the server verifies callers by.
type authorities struct {
	*dynamiccertificates.DynamicFileCAContent
	held   *trust.Held
	server dynamiccertificates.Listener // nil: it does not run yet
}

// open reads what was kept below a data directory.
func (a *authorities) open(set *settings, dir string, time *pki.Proven) {
	a.held = trust.New(trust.Config{
		Pool: set.NodePoolName, First: a.ofFile, Dir: filepath.Join(dir, "pki"), Time: time, Logger: set.Logger,
		Retrust: func() {
			if a.server != nil {
				a.server.Enqueue()
			}
		},
	})
	a.DynamicFileCAContent.AddListener(fileChanged{a})
}

// fileChanged is told when the file changes.
type fileChanged struct{ *authorities }

// Enqueue implements dynamiccertificates.Listener.
func (f fileChanged) Enqueue() { f.held.Reread() }

// AddListener implements dynamiccertificates.Notifier. It is called before the server runs.
func (a *authorities) AddListener(l dynamiccertificates.Listener) {
	a.server = l
	a.DynamicFileCAContent.AddListener(l)
}

// ofFile are the authorities of the file; none: it is no pool's.
func (a *authorities) ofFile() []*x509.Certificate {
	all, err := pki.ParseCertificates(a.DynamicFileCAContent.CurrentCABundleContent())
	if err != nil { // x509 takes more for a bundle than what there may be of authorities
		return nil
	}
	return all
}

// CurrentCABundleContent implements dynamiccertificates.CAContentProvider.
func (a *authorities) CurrentCABundleContent() []byte {
	if a.held.Number() == 0 {
		return a.DynamicFileCAContent.CurrentCABundleContent()
	}
	return pki.EncodeCertificates(a.held.List())
}

// VerifyOptions implements dynamiccertificates.CAContentProvider.
func (a *authorities) VerifyOptions() (x509.VerifyOptions, bool) {
	if a.held.Number() == 0 {
		return a.DynamicFileCAContent.VerifyOptions()
	}
	o := kx509.DefaultVerifyOptions()
	o.Roots = a.held.Get()
	return o, true
}

// roots are the same as a pool.
func (a *authorities) roots() *x509.CertPool {
	if o, ok := a.VerifyOptions(); ok {
		return o.Roots
	}
	return x509.NewCertPool() // nil would be those of the system
}

// peerCAFile is for an etcd that does TLS by itself, see store.Cluster.
func (s *settings) peerCAFile(ca *authorities) string {
	if ca.held.Number() == 0 {
		return s.caFile
	}
	return filepath.Join(ca.held.Dir, trust.CAFile)
}
