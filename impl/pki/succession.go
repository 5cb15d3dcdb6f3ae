package pki

import (
	"crypto/x509"
	"fmt"
	"time"
)

// Succession is the authority of a pool, and while it is replaced the one before and the one after it. An authority is replaced in three
// steps, and those who verify learn of each before the next: Prepare (both are trusted, the old one signs), Switch (both are
// trusted, the new one signs, leaves are renewed), Retire (the new one only).
type Succession struct {
	Signer   *Authority
	Next     *Authority          // trusted, signs nothing yet; nil: none
	Before   []*x509.Certificate // trusted still, the latest first
	Switched time.Time           // when the first of Before signed last
}

// mostTrusted is how many authorities of one pool may be trusted at a time.
const mostTrusted = 4

// Trusted are all authorities that count, the one that signs first.
func (s *Succession) Trusted() []*x509.Certificate {
	all := []*x509.Certificate{s.Signer.cert}
	if s.Next != nil {
		all = append(all, s.Next.cert)
	}
	return append(all, s.Before...)
}

// TrustPEM is the same as a file, for those who verify.
func (s *Succession) TrustPEM() []byte { return EncodeCertificates(s.Trusted()) }

// Prepare names the next authority.
func (s *Succession) Prepare(next *Authority) error {
	switch {
	case s.Next != nil:
		return mismatch("next authority", next.cert.Subject, "none until the one that was prepared before signs")
	case len(s.Before)+2 > mostTrusted:
		return mismatch("trusted authorities", len(s.Before)+2, fmt.Sprintf("%d at most: retire those before first", mostTrusted))
	case next.cert.Subject.CommonName != s.Signer.cert.Subject.CommonName:
		return mismatch("next authority", next.cert.Subject, "the same name as now: "+s.Signer.cert.Subject.CommonName)
	}
	s.Next = next
	return nil
}

// Switch lets the next authority sign from now on.
func (s *Succession) Switch(now time.Time) error {
	if s.Next == nil {
		return mismatch("next authority", "none", "one that was prepared, and that all who verify know")
	}
	s.Before = append([]*x509.Certificate{s.Signer.cert}, s.Before...)
	s.Signer, s.Next, s.Switched = s.Next, nil, now
	return nil
}

// Retire trusts the authorities before no more, once no leaf of theirs can be alive.
func (s *Succession) Retire(now time.Time) error {
	if until := s.Switched.Add(longest); len(s.Before) > 0 && now.Before(until) {
		return mismatch("now", now.UTC().Format(time.RFC3339), "not before "+until.UTC().Format(time.RFC3339)+": leaves of the authority before may live until then")
	}
	s.Before = nil
	return nil
}

// Names of the files of a Succession.
const (
	signerCert = "tls.crt"
	signerKey  = "tls.key"
	nextCert   = "next.crt"
	nextKey    = "next.key"
	beforeFile = "before.crt"
	switchedAt = "switched"
)

// Files is a Succession as it is kept.
func (s *Succession) Files() (map[string][]byte, error) {
	key, err := s.Signer.KeyPEM()
	if err != nil {
		return nil, fmt.Errorf("key of an authority: %w", err)
	}
	files := map[string][]byte{signerCert: s.Signer.pem, signerKey: key}
	if s.Next != nil {
		if files[nextKey], err = s.Next.KeyPEM(); err != nil {
			return nil, fmt.Errorf("key of an authority: %w", err)
		}
		files[nextCert] = s.Next.pem
	}
	if len(s.Before) > 0 {
		files[beforeFile] = EncodeCertificates(s.Before)
		files[switchedAt] = []byte(s.Switched.UTC().Format(time.RFC3339))
	}
	return files, nil
}

// LoadSuccession reads what Files wrote.
func LoadSuccession(files map[string][]byte) (s *Succession, err error) {
	s = &Succession{}
	if s.Signer, err = LoadAuthority(files[signerCert], files[signerKey]); err != nil {
		return nil, err
	}
	if files[nextCert] != nil {
		if s.Next, err = LoadAuthority(files[nextCert], files[nextKey]); err != nil {
			return nil, err
		}
	}
	if files[beforeFile] != nil {
		if s.Before, err = ParseCertificates(files[beforeFile]); err != nil {
			return nil, err
		}
		if s.Switched, err = time.Parse(time.RFC3339, string(files[switchedAt])); err != nil {
			return nil, mismatch(switchedAt, string(files[switchedAt]), "a time as in 2026-01-02T15:04:05Z")
		}
	}
	if len(s.Trusted()) > mostTrusted {
		return nil, mismatch("trusted authorities", len(s.Trusted()), fmt.Sprintf("%d at most", mostTrusted))
	}
	return s, nil
}
