package nodelocal

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pki"
)

const (
	year = 365 * 24 * time.Hour
	// preparedBefore and signsBefore are how long before the end of an authority its successor is made, and signs.
	preparedBefore, signsBefore = 3 * year, 2 * year
	// lookPeriod is how often it is looked whether something is due.
	lookPeriod = time.Minute
	leafLife   = 90 * 24 * time.Hour
)

// AuthorityConfig is what an Authority is made of. All of it is needed, but for File.
type AuthorityConfig struct {
	Node string
	// Dir is where keys are kept.
	Dir string
	// File is where the certificates are shown to all on the node. Default none.
	File string
	// Hosts are the addresses and names at which the node's clients reach its hub.
	Hosts  func() []string
	Clock  clock.WithTicker // of this machine: who verifies goes by it as well
	Logger *slog.Logger
}

// Authority is the authority of a node. See the package comment.
type Authority struct {
	AuthorityConfig
	renewal pki.Renewal
	changed func(trusted []byte) // nil: nobody wants to know

	mu       sync.Mutex // one at a time looks
	all      []held     // the oldest first
	hosts    []string   // of the certificate
	failed   string     // what was told last
	door     atomic.Pointer[tls.Certificate]
	shown    atomic.Pointer[trusted]
	restored []byte
}

// trusted is what those on the node trust.
type trusted struct {
	pem  []byte
	pool *x509.CertPool
	list []*x509.Certificate
}

// OpenAuthority brings back the authority of a node, or makes one.
func OpenAuthority(c AuthorityConfig) (*Authority, error) {
	//nolint:gosec // it spreads renewals
	a := &Authority{AuthorityConfig: c, renewal: pki.Renewal{Clock: c.Clock, Seed: rand.Uint64()}}
	if err := disk.Make(c.Dir); err != nil {
		return nil, err
	}
	if err := a.load(); err != nil {
		return nil, err
	}
	a.restored = newTrusted(a.all).pem
	if len(a.all) > 0 { // it goes on, also with a disk that is full
		if a.Look(); a.door.Load() != nil {
			return a, nil
		}
	}
	if err := a.look(); err != nil {
		return nil, fmt.Errorf("authority of node %s: %w", c.Node, err)
	}
	return a, nil
}

func newTrusted(all []held) *trusted {
	t := &trusted{pool: x509.NewCertPool()}
	for _, h := range all {
		t.list = append(t.list, h.cert)
		t.pool.AddCert(h.cert)
	}
	t.pem = pki.EncodeCertificates(t.list)
	return t
}

// Get is the hub's certificate for its node. It is never nil.
func (a *Authority) Get() *tls.Certificate {
	if c := a.door.Load(); pki.CheckSpan(c.Leaf, a.Clock.Now()) != nil { // the clock was set
		a.Look()
	}
	return a.door.Load()
}

// Trusted are all trusted authorities, in PEM. They are immutable.
func (a *Authority) Trusted() []byte { return a.shown.Load().pem }

// Restored are those that counted when the process before ended; nil: none did.
func (a *Authority) Restored() []byte { return a.restored }

// Pool is the same for those who verify.
func (a *Authority) Pool() *x509.CertPool { return a.shown.Load().pool }

// Now is the time by which all of this authority is judged.
func (a *Authority) Now() time.Time { return a.Clock.Now() }

// Follow has f told of other authorities. It is called before Run.
func (a *Authority) Follow(f func(trusted []byte)) { a.changed = f }

// Run renews what is due until ctx ends.
func (a *Authority) Run(ctx context.Context) error {
	tick := a.Clock.NewTicker(lookPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
			a.Look()
		}
	}
}

// Look renews what is due now. What fails is told, once, and tried again; what there was stays in use.
func (a *Authority) Look() {
	err := a.look()
	a.mu.Lock()
	defer a.mu.Unlock()
	text := ""
	if err != nil {
		if text = err.Error(); text != a.failed {
			a.Logger.Warn("the node's own certificates cannot be renewed; those that there are stay in use", "err", err)
		}
	}
	a.failed = text
}

func (a *Authority) look() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Clock.Now()
	next, err := plan(a.Node, a.all, now)
	if err != nil {
		return err
	}
	var failed error
	if !slices.Equal(next, a.all) {
		if failed = a.keep(next); failed == nil { // before anybody trusts it
			a.all = next
		} else if a.signer() == nil {
			return failed
		}
	}
	t := newTrusted(a.all)
	if old := a.shown.Load(); old == nil || !bytes.Equal(old.pem, t.pem) {
		a.shown.Store(t)
		a.Logger.Info("authorities of this node", "count", len(t.list),
			"until", t.list[len(t.list)-1].NotAfter.UTC().Format(time.RFC3339))
		if a.changed != nil {
			a.changed(t.pem)
		}
	}
	return errors.Join(failed, show(a.File, t.pem), a.issueDoor(now), a.issueKubelet(now))
}

// plan is which authorities there should be at a time. The same ones are the same values.
func plan(node string, all []held, clock time.Time) (next []held, err error) {
	at := pki.NodeTime(clock)
	left := func(h held) time.Duration { return h.cert.NotAfter.Sub(at) }
	var longest time.Duration
	for _, h := range all {
		if left(h) <= 0 {
			continue
		}
		if h.signer != nil {
			longest = max(longest, left(h))
		}
		next = append(next, h)
	}
	if longest <= preparedBefore {
		a, err := pki.NewNodeAuthority(node, clock)
		if err != nil {
			return nil, err
		}
		next = append(next, held{a.Cert(), a})
	}
	if len(next) > most {
		next = next[len(next)-most:]
	}
	for i := range next {
		if left(next[i]) <= signsBefore {
			next[i].signer = nil
		}
	}
	return next, nil
}

// signer is the oldest authority that may sign; nil: none was made yet.
func (a *Authority) signer() *pki.Authority {
	for _, h := range a.all {
		if h.signer != nil {
			return h.signer
		}
	}
	return nil
}

// issueDoor renews the hub's certificate. a.mu is held.
func (a *Authority) issueDoor(now time.Time) error {
	by, hosts := a.signer(), a.Hosts()
	if c := a.door.Load(); c != nil && a.good(c.Leaf, by, now) && slices.Equal(hosts, a.hosts) {
		return nil
	}
	pair, err := by.Grant(pki.Must(pki.Door), pki.Subject{Hosts: hosts}, now, leafLife)
	if err != nil {
		return err
	}
	cert, err := pair.TLS()
	if err != nil {
		return err
	}
	a.door.Store(&cert)
	a.hosts = hosts
	return nil
}

// good reports whether a certificate of an authority may stay.
func (a *Authority) good(leaf *x509.Certificate, by *pki.Authority, now time.Time) bool {
	return pki.CheckSpan(leaf, now) == nil && !a.renewal.Due(leaf) && leaf.CheckSignatureFrom(by.Cert()) == nil
}

// issueKubelet renews the kubelet's credential. a.mu is held.
func (a *Authority) issueKubelet(now time.Time) error {
	path, by, kubelet, subject := filepath.Join(a.Dir, kubeletFile), a.signer(), pki.Must(pki.Kubelet),
		pki.Subject{Node: a.Node}
	text, err := read(path)
	if err == nil && text != nil {
		pair := split(text)
		if chain, err := kubelet.CheckHeld(pair, subject); err == nil && a.good(chain[0], by, now) &&
			os.Chmod(path, 0o600) == nil {
			return nil
		}
	}
	pair, err := by.Grant(kubelet, subject, now, leafLife)
	if err != nil {
		return err
	}
	return disk.WriteFile(path, append(slices.Clone(pair.KeyPEM), pair.CertPEM...))
}

// load brings back the authorities, from the folder or from the copy. What cannot be used is put aside: without a hub
// the node has nothing, and it can make another authority.
func (a *Authority) load() error {
	var unusable error
	for _, path := range a.keys() {
		text, err := read(path)
		if err == nil && text == nil {
			continue
		}
		if err == nil {
			if a.all, err = parse(text, a.Node); err == nil {
				if err := a.keep(a.all); err != nil { // it goes on, also with a disk that is full
					a.Logger.Warn("the authority of this node is kept in one place only", "file", path, "err", err)
				}
				return nil
			}
		}
		a.all = nil
		a.Logger.Error("the authority of this node cannot be used", "file", path, "aside", path+".unusable", "err", err)
		if err := os.Rename(path, path+".unusable"); err != nil {
			return err
		}
		unusable = err
	}
	if unusable != nil {
		a.Logger.Error("another authority of this node is made: restart the kubelet; pods trust the hub again when kubelet " +
			"has brought them kube-root-ca.crt again")
	}
	return nil
}

// keys are the files of the authorities: the folder's, and a copy beside the certificates that the kubelet trusts. A
// kubelet that goes on while its hub has lost its folder would trust another authority only when client-go reads the
// file again, after five minutes.
func (a *Authority) keys() []string {
	paths := []string{filepath.Join(a.Dir, keysFile)}
	if a.File != "" {
		paths = append(paths, strings.TrimSuffix(a.File, filepath.Ext(a.File))+copySuffix)
	}
	return paths
}

// keep writes the authorities.
func (a *Authority) keep(all []held) error {
	text, err := encode(all)
	if err != nil {
		return err
	}
	for _, path := range a.keys() {
		if old, err := read(path); err == nil && bytes.Equal(old, text) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := disk.WriteFile(path, text); err != nil {
			return err
		}
	}
	return nil
}
