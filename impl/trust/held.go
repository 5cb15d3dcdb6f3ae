package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pki"
)

// Names of files in Config.Dir.
const (
	TextFile = "trust.json"
	CAFile   = "ca.crt"
)

// Config of what somebody holds.
type Config struct {
	Pool  string
	First func() []*x509.Certificate // of a file; nil: there is none
	Dir   string                     // where it is kept; "": nowhere
	// Beside is another directory for CAFile, of a coordinator on this machine; "": none.
	Beside string
	// Retrust is called when other authorities are trusted, by anyone who brought them; it must not wait. nil: nobody is
	// told.
	Retrust func()
	Time    *pki.Proven // bounds numbers; nil: nothing does
	Logger  *slog.Logger
}

// state is what a Held holds. It is immutable.
type state struct {
	links []*link // a chain
	pool  *x509.CertPool
	tag   string
	first string // tag of the file that counted when these bundles were taken
}

func (s *state) last() *link {
	if len(s.links) == 0 {
		return nil
	}
	return s.links[len(s.links)-1]
}

// Held is whom one member of a pool trusts. It is safe for concurrent use.
type Held struct {
	Config
	*bulletin.Document
	now atomic.Pointer[state]

	mu      sync.Mutex // held while it changes
	changed chan struct{}
}

// kept is what is on the disk.
type kept struct {
	First string `json:"first,omitempty"`
	Text  string `json:"text"`
}

// New reads what was kept. What cannot be read is ignored: whoever has the text will be asked for it.
func New(c Config) *Held {
	h := &Held{Config: c, changed: make(chan struct{})}
	h.Document = bulletin.New(h, &bulletin.Document{
		About: form.Subject, At: contract.TrustPath, Max: MaxText,
		Cloud: bulletin.ConfigMap(contract.AuthorityPrefix+c.Pool, contract.TrustKey), Key: contract.TrustKey,
		Log: c.Logger,
	})
	h.now.Store(&state{})
	if c.Dir == "" {
		return h
	}
	defer h.show()
	text, err := disk.ReadFile(filepath.Join(c.Dir, TextFile), maxKept)
	if err == nil {
		err = h.load(text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Logger.Warn("the trust bundle on the disk does not count", "dir", c.Dir, "err", err)
	}
	h.overrule()
	return h
}

func (h *Held) load(text []byte) error {
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return err
	}
	all, err := read([]byte(k.Text), h.Pool)
	if err == nil {
		h.now.Store(stateOf(chain(all), k.First))
	}
	return err
}

func stateOf(links []*link, first string) *state {
	s := &state{links: links, first: first}
	if l := s.last(); l != nil {
		s.pool = poolOf(l.trusted())
		s.tag = bulletin.TagOf(l.line)
	}
	return s
}

func poolOf(all []*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool() // never nil, which would be those of the system
	for _, c := range all {
		p.AddCert(c)
	}
	return p
}

func (h *Held) first() []*x509.Certificate {
	if h.First == nil {
		return nil
	}
	return h.First()
}

func tagOf(all []*x509.Certificate) string {
	if len(all) == 0 {
		return ""
	}
	return bulletin.TagOf(pki.EncodeCertificates(all))
}

// others are authorities of the file that are none of this pool's by their names. No bundle says anything of them.
func (h *Held) others() []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(h.first()), func(c *x509.Certificate) bool {
		return pki.CheckAuthority(c, h.Pool) == nil
	})
}

// List are the authorities that are valid now. The one that signs is first, if there is a bundle. None: nothing is
// known yet.
func (h *Held) List() []*x509.Certificate {
	if l := h.now.Load().last(); l != nil {
		return append(l.trusted(), h.others()...)
	}
	return h.first()
}

// Get is the same as a pool.
func (h *Held) Get() *x509.CertPool {
	if s := h.now.Load(); s.pool != nil && len(h.others()) == 0 {
		return s.pool
	}
	return poolOf(h.List())
}

// Signer is the authority that signs now, nil if that is not known.
func (h *Held) Signer() *x509.Certificate {
	if l := h.now.Load().last(); l != nil {
		return l.signer
	}
	return nil
}

// Speakers are those of List whose word counts for what is signed now, see pki.Speakers. Without a bundle all are.
func (h *Held) Speakers() []*x509.Certificate {
	if l := h.now.Load().last(); l != nil {
		return pki.Speakers(l.trusted())
	}
	return h.first()
}

// Number is that of the last bundle, 0 if there is none.
func (h *Held) Number() uint64 {
	if l := h.now.Load().last(); l != nil {
		return l.Number
	}
	return 0
}

// Text is all bundles that are held. Members with the same last one have the same tag.
func (h *Held) Text() (text []byte, tag string) {
	s := h.now.Load()
	return textOf(s.links), s.tag
}

// Changed is closed by the next change of what is held.
func (h *Held) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// Take looks at a text that a member of the pool handed over. What an authority vouches for that is trusted here
// counts.
func (h *Held) Take(text []byte) (changed bool, err error) { return h.take(text, false) }

// TakeOfCloud is Take for what came over an authenticated connection to the cloud. It counts whoever vouches for it,
// unless it is older than what is held.
func (h *Held) TakeOfCloud(text []byte) (changed bool, err error) { return h.take(text, true) }

func (h *Held) take(text []byte, cloud bool) (changed bool, err error) {
	theirs, err := read(text, h.Pool)
	if err != nil {
		return false, err
	}
	if err := h.bound(cloud).all(theirs); err != nil {
		return false, fmt.Errorf("trust bundle of pool %s: %w", h.Pool, err)
	}
	h.mu.Lock()
	before := h.now.Load()
	all := slices.Clone(before.links)
	last, first := before.last(), h.first()
	if n := len(theirs); cloud && n > 0 && last != nil && theirs[n-1].Number < last.Number {
		err = fmt.Errorf("trust bundle of pool %s: the cloud has number %d, and %d is held: if the cloud was restored from "+
			"a backup, weir pki rotate --pool %[1]s begins again",
			h.Pool, theirs[n-1].Number, last.Number)
	}
	for _, l := range theirs {
		if last != nil && l.Number <= last.Number {
			continue
		}
		vouched := last != nil && last.vouches(l) || last == nil && slices.ContainsFunc(first, l.signer.Equal)
		if !vouched && !cloud {
			err = fmt.Errorf("trust bundle %d of pool %s: %w", l.Number, h.Pool, errUnchained)
			break
		}
		if !vouched && last != nil {
			h.Logger.Warn("the cloud replaces the authority of the pool, and none of before vouches for it: its key was lost, "+
				"or the cloud was restored",
				"pool", h.Pool, "number", l.Number)
		}
		all, last = append(all, l), l
	}
	if len(all) == len(before.links) {
		h.mu.Unlock()
		return false, err
	}
	h.set(stateOf(chain(all), tagOf(first)))
	h.mu.Unlock()
	if h.Retrust != nil {
		h.Retrust()
	}
	return true, err
}

// bound is how far numbers may be ahead. The cloud's may be further than a member's, so that it can be above what that
// one made others believe.
func (h *Held) bound(cloud bool) bound {
	switch {
	case h.Time == nil:
		return bound{}
	case cloud:
		return bound{bulletin.By(h.Time).Later()}
	}
	return bound{bulletin.By(h.Time)}
}

// Lacks is the chain of bundles that is held, if the cloud has forgotten the last of them.
func (h *Held) Lacks(shown []byte) []byte {
	last := h.now.Load().last()
	if last == nil {
		return nil
	}
	if theirs, err := Last(shown, h.Pool); err == nil && theirs.Number >= last.Number {
		return nil
	}
	text, _ := h.Text()
	return text
}

// set puts another state in the place of the one before; h.mu is held.
func (h *Held) set(s *state) {
	h.now.Store(s)
	close(h.changed)
	h.changed = make(chan struct{})
	if l := s.last(); l != nil {
		h.Logger.Info("other authorities of the pool count", "pool", h.Pool, "number", l.Number, "signer", Name(l.signer),
			"trusted", len(l.trusted()))
	}
	h.keep(s)
	h.show()
}

// show writes the authorities that are valid for programs that only read files.
func (h *Held) show() {
	all := h.List()
	if h.Dir == "" || len(all) == 0 {
		return
	}
	for _, dir := range []string{h.Dir, h.Beside} {
		if dir == "" {
			continue
		}
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = disk.WriteFile(filepath.Join(dir, CAFile), pki.EncodeCertificates(all))
		}
		if err != nil {
			h.Logger.Error("the authorities that count cannot be written", "dir", dir, "err", err)
		}
	}
}

func (h *Held) keep(s *state) {
	if h.Dir == "" {
		return
	}
	text, err := json.Marshal(kept{s.first, string(textOf(s.links))})
	if err == nil {
		err = os.MkdirAll(h.Dir, 0o700)
	}
	if err == nil {
		err = disk.WriteFile(filepath.Join(h.Dir, TextFile), append(text, '\n'))
	}
	if err != nil {
		h.Logger.Error("the trust bundle counts, but cannot be kept: it is lost with this process", "dir", h.Dir, "err", err)
	}
}

// Reread follows a change of the file of the first authorities. It reports whether others are trusted now.
func (h *Held) Reread() (changed bool) {
	changed = h.overrule()
	if changed && h.Retrust != nil {
		h.Retrust()
	}
	return changed
}

// overrule drops what is held if the file is another one, and has an authority of the pool that the bundle does not
// have.
func (h *Held) overrule() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s, first := h.now.Load(), h.first()
	l := s.last()
	if l == nil || len(first) == 0 || tagOf(first) == s.first {
		return false
	}
	known := func(c *x509.Certificate) bool {
		return pki.CheckAuthority(c, h.Pool) != nil || slices.ContainsFunc(l.trusted(), c.Equal)
	}
	if !slices.ContainsFunc(first, func(c *x509.Certificate) bool { return !known(c) }) {
		return false
	}
	h.Logger.Warn("the file of the pool's authorities was replaced by one of others: it counts above the trust bundle",
		"pool", h.Pool, "number", l.Number)
	h.set(&state{})
	return true
}

// Name tells an authority from others of its pool.
func Name(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:4])
}
