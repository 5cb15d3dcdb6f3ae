package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-edge/weir/impl/bulletin"
	"github.com/weir-edge/weir/impl/pki"
)

// Bounds.
const (
	MaxLinks   = 16 // bundles of one text, the latest ones
	MaxText    = 256 << 10
	maxLine    = MaxText / MaxLinks
	maxTrusted = 4
	maxKept    = 2*MaxText + 4<<10 // of the file: a text in JSON, every second byte of it escaped
)

// errUnchained is of a text that nobody vouches for the one that is trusted here.
var errUnchained = errors.New("no authority that is trusted here, and signs or is to sign, vouches for it")

// form is how bundles are signed.
var form = bulletin.Form{Subject: "trust bundle", Field: "bundle", Max: maxLine}

// Bundle is what is signed. Authorities are certificates in DER.
type Bundle struct {
	Pool   string    `json:"pool"`
	Number uint64    `json:"number"` // the time of writing in milliseconds, or one more than the one before
	Issued time.Time `json:"issued"`
	Signer []byte    `json:"signer"`
	Next   []byte    `json:"next,omitempty"` // signs later
	Before [][]byte  `json:"before,omitempty"`
}

// link is one bundle of a text, as it was read.
type link struct {
	Bundle
	signer, next *x509.Certificate // next: nil if there is none
	before       []*x509.Certificate
	line         []byte
}

// trusted are all that count, the one that signs first.
func (l *link) trusted() []*x509.Certificate {
	all := []*x509.Certificate{l.signer}
	if l.next != nil {
		all = append(all, l.next)
	}
	return append(all, l.before...)
}

// vouches reports whether a bundle may follow this one.
func (l *link) vouches(after *link) bool {
	return l.signer.Equal(after.signer) || l.next != nil && l.next.Equal(after.signer)
}

// open reads one line of a pool's text, if the authority has signed it that it names as its signer.
func open(line []byte, pool string) (*link, error) {
	fail := func(err error) (*link, error) { return nil, fmt.Errorf("trust bundle of pool %s: %w", pool, err) }
	s, err := form.Read(line)
	if err != nil {
		return fail(err)
	}
	l := &link{line: s.Line}
	if err := json.Unmarshal(s.Doc, &l.Bundle); err != nil {
		return fail(err)
	}
	if l.Pool != pool {
		return fail(fmt.Errorf("it is of pool %q", l.Pool))
	}
	if n := len(l.Before); n > maxTrusted-1 || l.Next != nil && n > maxTrusted-2 {
		return fail(fmt.Errorf("%d authorities of before, want %d in all at most", n, maxTrusted))
	}
	if l.signer, err = authority(l.Signer, pool); err != nil {
		return fail(err)
	}
	if l.Next != nil {
		if l.next, err = authority(l.Next, pool); err != nil {
			return fail(err)
		}
	}
	for _, der := range l.Before {
		c, err := authority(der, pool)
		if err != nil {
			return fail(err)
		}
		l.before = append(l.before, c)
	}
	if s.By(l.signer) == nil {
		return fail(errUnsigned)
	}
	return l, nil
}

var errUnsigned = errors.New("the authority that it names has not signed it")

func authority(der []byte, pool string) (*x509.Certificate, error) {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return c, pki.CheckAuthority(c, pool)
}

// read takes a text apart: bundles of a pool, in the order of their numbers.
func read(text []byte, pool string) (all []*link, err error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("trust bundle of pool %s: %d bytes, want %d at most", pool, len(text), MaxText)
	}
	for line := range bytes.Lines(text) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if len(all) == MaxLinks {
			return nil, fmt.Errorf("trust bundle of pool %s: more than %d bundles", pool, MaxLinks)
		}
		l, err := open(line, pool)
		if err != nil {
			return nil, err
		}
		if n := len(all); n > 0 && l.Number <= all[n-1].Number {
			return nil, fmt.Errorf("trust bundle of pool %s: number %d comes after %d", pool, l.Number, all[n-1].Number)
		}
		all = append(all, l)
	}
	return all, nil
}

// Last is the last bundle of a text.
func Last(text []byte, pool string) (Bundle, error) {
	all, err := read(text, pool)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("trust bundle of pool %s: there is none", pool)
	}
	if err != nil {
		return Bundle{}, err
	}
	return all[len(all)-1].Bundle, nil
}

// Later are the authorities that are valid by the last bundle of a text, and its number, if an authority that signs
// here vouches for it, directly or by a chain of others.
func Later(text []byte, pool string, signer *x509.Certificate) (trusted []*x509.Certificate, number uint64, err error) {
	all, err := read(text, pool)
	if err != nil {
		return nil, 0, err
	}
	all = chain(all)
	if len(all) == 0 || !slices.ContainsFunc(all, func(l *link) bool { return l.signer.Equal(signer) }) {
		return nil, 0, fmt.Errorf("trust bundle of pool %s: %w", pool, errUnchained)
	}
	last := all[len(all)-1]
	return last.trusted(), last.Number, nil
}

// bound is how far the numbers of bundles may be ahead.
type bound struct{ bulletin.Bound }

// all refuses bundles of which one is further ahead.
func (b bound) all(links []*link) error {
	for _, l := range links {
		if err := b.Number(l.Number); err != nil {
			return err
		}
	}
	return nil
}

// chain is the end of some bundles: as many as follow one from the other, MaxLinks at most.
func chain(all []*link) []*link {
	first := len(all) - 1
	for first > 0 && len(all)-first < MaxLinks && all[first-1].vouches(all[first]) {
		first--
	}
	return all[max(first, 0):]
}

func textOf(all []*link) (text []byte) {
	for _, l := range all {
		text = append(text, l.line...)
	}
	return text
}

// Publish is the text of a pool after one more step of its authority. It is the same if the last bundle says what the
// succession says, and has the number above or a later one. A text that cannot be read is begun again.
func Publish(text []byte, pool string, s *pki.Succession, above uint64, now time.Time) (after []byte, err error) {
	fail := func(err error) ([]byte, error) { return nil, fmt.Errorf("trust bundle of pool %s: %w", pool, err) }
	all, err := read(text, pool)
	if err != nil || (bound{bulletin.At(now).Later()}).all(all) != nil {
		all = nil
	}
	b := Bundle{
		Pool: pool, Number: bulletin.Next(0, now), Issued: now.UTC().Truncate(time.Millisecond), Signer: s.Signer.Cert().Raw,
	}
	if s.Next != nil {
		b.Next = s.Next.Cert().Raw
	}
	for _, c := range s.Before {
		b.Before = append(b.Before, c.Raw)
	}
	if n := len(all); n > 0 {
		last := all[n-1]
		if last.Number >= above && bytes.Equal(last.Signer, b.Signer) && bytes.Equal(last.Next, b.Next) &&
			slices.EqualFunc(last.Before, b.Before, bytes.Equal) {
			return text, nil
		}
		b.Number = bulletin.Next(last.Number, now)
	}
	b.Number = max(b.Number, above)
	line, err := form.Sign(s.Signer, b)
	if err != nil {
		return fail(err)
	}
	l, err := open(line, pool) // as those will who verify
	if err != nil {
		return nil, err
	}
	return textOf(chain(append(all, l))), nil
}
