package hub

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
)

// reloadPeriod is how often credential files are read again. Reading beats watching: it does not matter how the files are
// replaced, and a few kilobytes are read from the page cache.
const reloadPeriod = 10 * time.Second

// pair is a certificate with its key, from files.
type pair struct {
	certFlag, certFile string
	keyFlag, keyFile   string
	raw                []byte
	current            atomic.Pointer[tls.Certificate]
}

func loadPair(certFlag, certFile, keyFlag, keyFile string) (*pair, error) {
	p := &pair{certFlag: certFlag, certFile: certFile, keyFlag: keyFlag, keyFile: keyFile}
	_, err := p.reload()
	return p, err
}

func (p *pair) get() *tls.Certificate { return p.current.Load() }

// reload tells whether the files changed. A pair of which only one file was replaced yet does not match and is an error;
// the next reload finds both.
func (p *pair) reload() (changed bool, err error) {
	cert, err := os.ReadFile(p.certFile)
	if err != nil {
		return false, cli.Usage(p.certFlag, p.certFile, err.Error())
	}
	key, err := os.ReadFile(p.keyFile)
	if err != nil {
		return false, cli.Usage(p.keyFlag, p.keyFile, err.Error())
	}
	raw := append(append(cert[:len(cert):len(cert)], 0), key...)
	if bytes.Equal(raw, p.raw) {
		return false, nil
	}
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, cli.Usage(p.certFlag, p.certFile, "a PEM certificate and its key: "+err.Error())
	}
	p.raw = raw
	p.current.Store(&c)
	return true, nil
}

// bundle is a set of authorities, from a file.
type bundle struct {
	flag, file string
	raw        []byte
	current    atomic.Pointer[x509.CertPool]
}

func loadBundle(flag, file string) (*bundle, error) {
	b := &bundle{flag: flag, file: file}
	_, err := b.reload()
	return b, err
}

func (b *bundle) get() *x509.CertPool { return b.current.Load() }

func (b *bundle) reload() (changed bool, err error) {
	raw, err := os.ReadFile(b.file)
	if err != nil {
		return false, cli.Usage(b.flag, b.file, err.Error())
	}
	if bytes.Equal(raw, b.raw) {
		return false, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(raw) {
		return false, cli.Usage(b.flag, b.file, "a PEM file with at least one certificate")
	}
	b.raw = raw
	b.current.Store(pool)
	return true, nil
}

// reloader reads credential files again and again.
type reloader struct {
	files  []interface{ reload() (bool, error) }
	then   func() // called after something changed, and now and then anyway
	clock  clock.WithTicker
	logger *slog.Logger
}

// run blocks until ctx ends. What cannot be read keeps its last good content.
func (r *reloader) run(ctx context.Context) error {
	tick := r.clock.NewTicker(reloadPeriod)
	defer tick.Stop()
	failing := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
		failed := ""
		changed := false
		for _, f := range r.files {
			c, err := f.reload()
			if err != nil {
				failed = fmt.Sprintf("%s%v; ", failed, err)
			}
			changed = changed || c
		}
		if failed != "" && failed != failing {
			r.logger.Warn("credentials cannot be reloaded; the last good ones stay in use", "err", failed)
		}
		failing = failed
		if changed {
			r.logger.Info("credentials reloaded")
			r.then()
		}
	}
}
