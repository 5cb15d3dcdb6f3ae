package uplink

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/cli"
	"github.com/weir-edge/weir/impl/credential"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pki"
	"github.com/weir-edge/weir/impl/process"
)

// reloadPeriod is how often credential files are read again. Reading beats watching: it does not matter how the files
// are replaced, and a few kilobytes are read from the page cache.
const reloadPeriod = 10 * time.Second

// Certificate is one that may be replaced at any time.
type Certificate interface {
	Get() *tls.Certificate // nil: there is none yet
}

var errNone = errors.New("there is no certificate: its file cannot be used, see weir_hub_lacks, or it was asked for, " +
	"see weir_certificate_failures_total")

// Held is what a certificate is now. Without one it is an error: a handshake that shows none says less.
func Held(c Certificate) (*tls.Certificate, error) {
	if now := c.Get(); now != nil {
		return now, nil
	}
	return nil, errNone
}

// Pair is a certificate with its key, from a file.
type Pair struct {
	flag, file string
	in         *credential.File // which has it where that is not there; nil: none has
	raw        []byte
	current    atomic.Pointer[tls.Certificate]
}

// Get is the pair as it was read last.
func (p *Pair) Get() *tls.Certificate { return p.current.Load() }

// Reload reports whether the pair changed. One of a kubeconfig of whose files only one was replaced yet does not match
// and is an error; the next reload finds both.
func (p *Pair) Reload() (changed bool, err error) {
	cert, key, err := p.read()
	if err != nil {
		return false, err
	}
	raw := append(append(cert[:len(cert):len(cert)], 0), key...)
	if bytes.Equal(raw, p.raw) {
		return false, nil
	}
	c, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return false, cli.Usage(p.flag, p.file, "a PEM certificate and its key: "+err.Error())
	}
	p.raw = raw
	if credential.IsLocal(c.Leaf) { // a kubelet whose own has ended has this in its place, which nobody but its hub takes
		return false, nil
	}
	p.current.Store(&c)
	return true, nil
}

// Ours reports whether the kubelet has shown nothing yet but what it has of weir node join.
func (p *Pair) Ours() bool { return p.raw != nil && p.Get() == nil }

// read reads the file; those of a kubeconfig where it is not there.
func (p *Pair) read() (cert, key []byte, err error) {
	if p.in != nil && (p.file == "" || !there(p.file)) {
		k, err := p.in.Read()
		if err == nil {
			cert, key, err = k.Pair()
		}
		if err != nil {
			return nil, nil, cli.Usage(KubeconfigFlag, p.in.Path, err.Error())
		}
		return cert, key, nil
	}
	both, err := disk.ReadFile(p.file, pki.MaxPEM)
	if err != nil {
		return nil, nil, cli.Usage(p.flag, p.file, err.Error())
	}
	return both, both, nil
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Authorities are a set that may change at any time.
type Authorities interface {
	Get() *x509.CertPool
	List() []*x509.Certificate
}

// Bundle is a set of authorities, from files of PEM, or from kubeconfigs: those of their current clusters, wherever
// they have them.
type Bundle struct {
	flag    string
	files   []*credential.File
	copy    string // where its last good content is kept; "": nowhere
	raw     atomic.Pointer[[]byte]
	current atomic.Pointer[x509.CertPool]
}

// Get is the set as it was read last. While none could be read nobody is in it: no set would mean the authorities of
// the machine.
func (b *Bundle) Get() *x509.CertPool {
	if pool := b.current.Load(); pool != nil {
		return pool
	}
	return x509.NewCertPool()
}

// List is the same, one by one.
func (b *Bundle) List() (all []*x509.Certificate) {
	raw := b.raw.Load()
	if raw == nil {
		return nil
	}
	for block, rest := pem.Decode(*raw); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, c)
		}
	}
	return all
}

// Reload reports whether the file changed.
func (b *Bundle) Reload() (changed bool, err error) {
	var raw []byte
	for _, f := range b.files {
		text, err := authorities(f)
		if err == nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
			err = errors.New("a PEM file with at least one certificate, or a kubeconfig with an authority")
		}
		if err != nil {
			return false, cli.Usage(b.flag, f.Path, err.Error())
		}
		raw = append(append(raw, text...), '\n')
	}
	if former := b.raw.Load(); former != nil && bytes.Equal(raw, *former) {
		return false, nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(raw)
	b.raw.Store(&raw)
	b.current.Store(pool)
	if b.copy != "" {
		if kept, err := disk.ReadFile(b.copy, pki.MaxPEM); err != nil || !bytes.Equal(kept, raw) {
			_ = disk.WriteFile(b.copy, raw) // a disk that is full costs the copy
		}
	}
	return true, nil
}

// restore takes the last good content.
func (b *Bundle) restore() {
	pool := x509.NewCertPool()
	if raw, err := disk.ReadFile(b.copy, pki.MaxPEM); err == nil && pool.AppendCertsFromPEM(raw) {
		b.current.Store(pool)
	}
}

// authorities are those of a file, or of the kubeconfig that it is.
func authorities(f *credential.File) ([]byte, error) {
	text, err := disk.ReadFile(f.Path, pki.MaxPEM)
	if err != nil || bytes.Contains(text, []byte("-----BEGIN ")) {
		return text, err
	}
	k, err := f.Read()
	if err != nil {
		return nil, fmt.Errorf("a file of certificates in PEM, or a kubeconfig: %w", err)
	}
	return k.Authorities()
}

// Reloader reads credential files again and again.
type Reloader struct {
	// Worked says that the hub has run with these files before: one that cannot be used is damaged then, and no mistake in
	// the flags. It is as if it held nothing until it can be used.
	Worked bool
	Clock  clock.WithTicker
	Logger *slog.Logger

	mu    sync.Mutex // guards what failed
	files []*watched
}

// watched is a file, or a pair of files, and what is wrong with it.
type watched struct {
	file interface{ Reload() (bool, error) }
	flag string
	err  error // of the last look; nil: none
}

// first reads a file for the first time.
func (r *Reloader) first(w *watched) error {
	r.files = append(r.files, w)
	if _, w.err = w.file.Reload(); w.err != nil && r.Worked {
		r.Logger.Error("a credential cannot be used; the hub goes on without it, and reads it again every "+
			reloadPeriod.String(), "err", w.err)
		return nil
	}
	return w.err
}

// Pair reads a certificate and its key, now and again.
func (r *Reloader) Pair(flag, file string) (*Pair, error) {
	p := &Pair{flag: flag, file: file}
	return p, r.first(&watched{file: p, flag: flag})
}

// Bundle reads authorities, now and again.
func (r *Reloader) Bundle(flag string, files ...string) (*Bundle, error) {
	return r.Kept(flag, "", files...)
}

// Kept is a Bundle whose last good content is kept in a file, and counts while its own cannot be used: without
// authorities of the cloud nothing could be passed on.
func (r *Reloader) Kept(flag, in string, files ...string) (*Bundle, error) {
	b := &Bundle{flag: flag, copy: in}
	for _, f := range files {
		b.files = append(b.files, &credential.File{Path: f})
	}
	w := &watched{file: b, flag: flag}
	err := r.first(w)
	if w.err != nil && err == nil && in != "" {
		b.restore()
	}
	return b, err
}

// Failing is what is wrong with files now.
func (r *Reloader) Failing() (all []process.Lack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.files {
		if w.err != nil {
			all = append(all, process.Lack{What: w.flag, Why: w.err.Error()})
		}
	}
	return all
}

// Run blocks until ctx ends, and calls then after something changed. What cannot be read keeps its last good content.
func (r *Reloader) Run(ctx context.Context, then func()) error {
	tick := r.Clock.NewTicker(reloadPeriod)
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
		r.mu.Lock()
		for _, w := range r.files {
			var c bool
			if c, w.err = w.file.Reload(); w.err != nil {
				failed = fmt.Sprintf("%s%v; ", failed, w.err)
			}
			changed = changed || c
		}
		r.mu.Unlock()
		if failed != "" && failed != failing {
			r.Logger.Warn("credentials cannot be reloaded; the last good ones stay in use", "err", failed)
		}
		failing = failed
		if changed {
			r.Logger.Info("credentials reloaded")
			then()
		}
	}
}
