package trust

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/contract"
	"github.com/weir-edge/weir/impl/disk"
	"github.com/weir-edge/weir/impl/pki"
)

// RefusedError says why a certificate is not taken.
type RefusedError struct{ Denial }

func (e *RefusedError) Error() string {
	return fmt.Sprintf(
		"certificates of node %s that were issued until %s are revoked: the node was deleted, or left the pool",
		e.Node, e.Before.UTC().Format(time.RFC3339))
}

// DenylistConfig of what somebody holds.
type DenylistConfig struct {
	Pool    string
	Trusted func() []*x509.Certificate // authorities of the pool as they are now
	// Speakers are those of Trusted that may sign lists now. What others signed is valid only until there is a list of
	// theirs. Nil: all may.
	Speakers func() []*x509.Certificate
	Time     *pki.Proven // bounds numbers and times; nil: nothing does
	File     string      // where it is kept; "": nowhere
	Logger   *slog.Logger
}

// heldList is one list as it came.
type heldList struct {
	Denylist
	text []byte            // its line, with the end
	by   *x509.Certificate // that has signed it
}

// denials is what a HeldDenylist holds. It is immutable.
type denials struct {
	lists   []heldList // the newest first; those after it have entries that it lacks
	entries []Denial
	byName  map[string]Denial // by the common names that are one holder's
	tag     string            // "": nothing is held
}

// HeldDenylist is what a verifier holds of the lists of its pool. It is safe for concurrent use. A nil one refuses
// nothing.
type HeldDenylist struct {
	DenylistConfig
	*bulletin.Document
	refused atomic.Uint64

	taking sync.Mutex // held by one Take at a time
	now    atomic.Pointer[denials]

	mu      sync.Mutex
	guards  map[*guard]struct{}
	changed chan struct{} // closed by the next change
}

type guard struct {
	cert *x509.Certificate
	end  func(error)
}

// NewDenylist reads what was kept. What cannot be read or is of other authorities is ignored: who has the newest list
// will be asked for it.
func NewDenylist(c DenylistConfig) *HeldDenylist {
	h := &HeldDenylist{DenylistConfig: c, guards: map[*guard]struct{}{}, changed: make(chan struct{})}
	h.Document = bulletin.New(h, &bulletin.Document{
		About: denylistForm.Subject, At: contract.DenylistPath, Max: MaxDenylistText,
		Cloud: bulletin.ConfigMap(contract.DenylistPrefix+c.Pool, contract.DenylistKey), Key: contract.DenylistKey,
		Log: c.Logger,
	})
	h.now.Store(&denials{})
	if c.File == "" {
		return h
	}
	text, err := disk.ReadFile(c.File, MaxDenylistText)
	if err == nil {
		_, err = h.take(text, true)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Logger.Warn("the denylist on the disk is invalid", "file", c.File, "err", err)
	}
	return h
}

// Number is that of the newest list, 0 if there is none.
func (h *HeldDenylist) Number() uint64 {
	if s := h.now.Load(); len(s.lists) > 0 {
		return s.lists[0].Number
	}
	return 0
}

// Changed is closed by the next change of what is held.
func (h *HeldDenylist) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// Entries are those that are valid.
func (h *HeldDenylist) Entries() []Denial { return h.now.Load().entries }

// Text is all lists that are held, and Tag is the same for the same lists.
func (h *HeldDenylist) Text() (text []byte, tag string) {
	s := h.now.Load()
	for _, l := range s.lists {
		text = append(text, l.text...)
	}
	return text, s.tag
}

// Take looks at lists that somebody handed over, and reports whether they changed what is held.
func (h *HeldDenylist) Take(text []byte) (changed bool, err error) { return h.take(text, false) }

// TakeOfCloud is Take: the signature says all.
func (h *HeldDenylist) TakeOfCloud(text []byte) (changed bool, err error) { return h.take(text, false) }

// take looks at lists. kept: they are of the disk, and were looked at when they came.
func (h *HeldDenylist) take(text []byte, kept bool) (changed bool, err error) {
	h.taking.Lock()
	defer h.taking.Unlock()
	before := h.now.Load()
	if len(text) > MaxDenylistText {
		return false, fmt.Errorf("denylist of pool %s: %d bytes, want %d at most", h.Pool, len(text), MaxDenylistText)
	}
	all, bound := slices.Clone(before.lists), bulletin.Bound{}
	if h.Time != nil && !kept {
		bound = bulletin.By(h.Time)
	}
	for n, line := range DenylistLines(text) {
		if n == MaxDenylists {
			return false, fmt.Errorf("denylist of pool %s: more than %d lists", h.Pool, MaxDenylists)
		}
		if slices.ContainsFunc(all, func(l heldList) bool {
			return bytes.Equal(bytes.TrimSpace(l.text), bytes.TrimSpace(line))
		}) {
			continue
		}
		l, by, err := OpenDenylist(line, h.Pool, h.Trusted())
		if err != nil {
			return false, err
		}
		if err := l.Within(bound); err != nil {
			return false, fmt.Errorf("denylist of pool %s: %w", h.Pool, err)
		}
		all = append(all, heldList{l, append(bytes.TrimSpace(line), '\n'), by})
	}
	after := combine(h.speaking(all))
	if after.tag == before.tag {
		return false, nil
	}
	h.now.Store(after)
	h.enforce()
	for _, e := range after.entries {
		if !slices.ContainsFunc(before.entries, func(o Denial) bool { return o.Node == e.Node && o.Before.Equal(e.Before) }) {
			h.Logger.Warn("the certificates of a node are revoked", "pool", h.Pool, "node", e.Node, "uid", e.UID,
				"issuedUntil", e.Before, "number", after.lists[0].Number)
		}
	}
	if text, _ := h.Text(); !kept && h.File != "" {
		if err := disk.WriteFile(h.File, text); err != nil {
			h.Logger.Error("the denylist is used, but cannot be kept: it is lost with this process", "file", h.File, "err", err)
		}
	}
	return true, nil
}

// speaking are the lists of those that may sign now, if there is one of theirs: they have signed again what is valid of
// the others, one of whom may have lost its key. What nobody signed who is trusted at all is gone at once.
func (h *HeldDenylist) speaking(all []heldList) []heldList {
	if h.Speakers == nil {
		return all
	}
	trusted, may := h.Trusted(), h.Speakers()
	all = slices.DeleteFunc(all, func(l heldList) bool { return !slices.ContainsFunc(trusted, l.by.Equal) })
	speaks := func(l heldList) bool { return slices.ContainsFunc(may, l.by.Equal) }
	if !slices.ContainsFunc(all, speaks) {
		return all
	}
	return slices.DeleteFunc(all, func(l heldList) bool { return !speaks(l) })
}

// Lacks are the lists with something that the cloud has forgotten.
func (h *HeldDenylist) Lacks(shown []byte) (text []byte) {
	theirs := DenylistLines(shown)
	for _, l := range h.now.Load().lists {
		if !slices.ContainsFunc(theirs, func(line []byte) bool {
			return bytes.Equal(bytes.TrimSpace(line), bytes.TrimSpace(l.text))
		}) {
			text = append(text, l.text...)
		}
	}
	return text
}

// combine makes the state of some lists. Those that add nothing to newer ones go.
func combine(all []heldList) *denials {
	slices.SortStableFunc(all, func(a, b heldList) int { return cmp.Compare(b.Number, a.Number) })
	s := &denials{}
	for _, l := range all {
		now := l.Issued
		if len(s.lists) > 0 {
			now = s.lists[0].Issued
		}
		with := merge(now, s.entries, l.Entries)
		if len(s.lists) > 0 &&
			slices.EqualFunc(with, s.entries, func(a, b Denial) bool { return a.Node == b.Node && a.Before.Equal(b.Before) }) {
			continue
		}
		if len(s.lists) == MaxDenylists {
			break
		}
		s.lists, s.entries = append(s.lists, l), with
	}
	if len(s.lists) == 0 {
		return s
	}
	s.byName = map[string]Denial{}
	for _, e := range s.entries {
		for _, name := range e.commonNames(s.lists[0].Pool) {
			if have, ok := s.byName[name]; !ok || have.Before.Before(e.Before) {
				s.byName[name] = e
			}
		}
	}
	texts := make([][]byte, 0, len(s.lists))
	for _, l := range s.lists {
		texts = append(texts, l.text)
	}
	s.tag = bulletin.TagOf(texts...)
	return s
}

// Refuse reports why a certificate is refused: a *RefusedError. nil: no list says anything of it.
func (h *HeldDenylist) Refuse(cert *x509.Certificate) error {
	if h == nil {
		return nil
	}
	if err := h.now.Load().refuse(cert); err != nil {
		h.refused.Add(1)
		return err
	}
	return nil
}

func (s *denials) refuse(cert *x509.Certificate) error {
	if e, ok := s.byName[cert.Subject.CommonName]; ok && !cert.NotBefore.After(e.Before) {
		return &RefusedError{e}
	}
	if cert.Subject.CommonName != contract.CoordinatorName {
		return nil
	}
	hosts := slices.Clone(cert.DNSNames)
	for _, ip := range cert.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	keys := []string{KeyOf(cert.PublicKey)}
	for _, e := range s.entries {
		if e.serves(hosts, keys) && !cert.NotBefore.After(e.Before) {
			return &RefusedError{e}
		}
	}
	return nil
}

// Guard calls end with a *RefusedError when a certificate is refused, at once if it is already. It may be called from
// any goroutine, and holds no lock. After forget it is not called any more, but it may be running.
func (h *HeldDenylist) Guard(cert *x509.Certificate, end func(error)) (forget func()) {
	if h == nil {
		return func() {}
	}
	g := &guard{cert, end}
	h.mu.Lock()
	h.guards[g] = struct{}{}
	h.mu.Unlock()
	forget = func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.guards, g)
	}
	if err := h.now.Load().refuse(cert); err != nil { // a list that came before the guard was there
		forget()
		end(err)
	}
	return forget
}

// enforce ends what is open, and tells who waits.
func (h *HeldDenylist) enforce() {
	s := h.now.Load()
	ends := map[*guard]error{}
	h.mu.Lock()
	close(h.changed)
	h.changed = make(chan struct{})
	for g := range h.guards {
		if err := s.refuse(g.cert); err != nil {
			ends[g] = err
			delete(h.guards, g)
		}
	}
	h.mu.Unlock()
	for g, err := range ends {
		h.refused.Add(1)
		g.end(err)
	}
}
