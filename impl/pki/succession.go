package pki

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// Succession is the authority of a pool, and while it is replaced the one before and the one after it. An authority is
// replaced in three steps, and those who verify learn of each before the next: Prepare (both are trusted, the old one
// signs), Switch (both are trusted, the new one signs, leaves are renewed), Retire (the new one only). Each step says
// when the next may be taken.
type Succession struct {
	Signer   *Authority
	Next     *Authority          // trusted, signs nothing yet; nil: none
	Before   []*x509.Certificate // trusted still, the latest first
	SignsAt  time.Time           // when Next signs; if there is none: when Signer does, or did
	Overlap  time.Duration       // for which Signer counts once Next signs
	RetireAt time.Time           // when those of Before are no longer valid
}

// Bounds of the times of a rotation.
const (
	LeastSettle = 10 * time.Second // for those who verify
	MostSettle  = 30 * day
	// LeastOverlap is for those who hold a leaf to get another one, who spread that over some seconds.
	LeastOverlap = 30 * time.Second
	MostOverlap  = 2 * longest // the longest life of a leaf, and as much again for the one that was away when it ended
	mostTrusted  = 4           // authorities of one pool at a time
)

// Plan says when the steps of a rotation are taken.
type Plan struct {
	Settle  time.Duration // from Prepare to Switch: all who verify have to hear of the next authority
	Overlap time.Duration // from Switch to Retire: all leaves of the one before have to be renewed
}

// Usual is the plan of a rotation that nobody is in a hurry for.
func Usual() Plan { return Plan{Settle: time.Hour, Overlap: MostOverlap} }

// Check reports what in a plan is invalid.
func (p Plan) Check() error {
	switch {
	case p.Settle < LeastSettle || p.Settle > MostSettle:
		return mismatch("settle", p.Settle, fmt.Sprintf("%s to %s", LeastSettle, MostSettle))
	case p.Overlap < LeastOverlap || p.Overlap > MostOverlap:
		return mismatch("overlap", p.Overlap, fmt.Sprintf("%s to %s", LeastOverlap, MostOverlap))
	}
	return nil
}

// Trusted are all trusted authorities, the one that signs first.
func (s *Succession) Trusted() []*x509.Certificate {
	all := []*x509.Certificate{s.Signer.cert}
	if s.Next != nil {
		all = append(all, s.Next.cert)
	}
	return append(all, s.Before...)
}

// Speakers are those of some trusted authorities, the signer first, whose word counts for what is signed now: the one
// that signs, the next one, and those after it of which a cloud that was restored from a backup has lost the keys. Not
// those before: a key may be why they were replaced. What was signed by them has been signed again since.
func Speakers(trusted []*x509.Certificate) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(trusted), func(c *x509.Certificate) bool {
		return c.NotBefore.Before(trusted[0].NotBefore)
	})
}

// TrustPEM is the same as a file, for those who verify.
func (s *Succession) TrustPEM() []byte { return EncodeCertificates(s.Trusted()) }

// Prepare names the next authority.
func (s *Succession) Prepare(next *Authority, now time.Time, p Plan) error {
	switch err := p.Check(); {
	case err != nil:
		return err
	case s.Next != nil:
		return mismatch("next authority", next.cert.Subject, "none until the one that was prepared before signs, at "+
			s.SignsAt.UTC().Format(time.RFC3339))
	case now.Before(s.SignsAt):
		return mismatch("next authority", next.cert.Subject,
			"none until the one of now signs, at "+s.SignsAt.UTC().Format(time.RFC3339))
	case len(s.Before)+2 > mostTrusted:
		return mismatch("trusted authorities", len(s.Before)+2,
			fmt.Sprintf("%d at most: those before are retired at %s", mostTrusted, s.RetireAt.UTC().Format(time.RFC3339)))
	case next.cert.Subject.CommonName != s.Signer.cert.Subject.CommonName:
		return mismatch("next authority", next.cert.Subject, "the same name as now: "+s.Signer.cert.Subject.CommonName)
	}
	s.Next, s.SignsAt, s.Overlap = next, now.Add(p.Settle), p.Overlap
	return nil
}

// Switch lets the next authority sign from now on.
func (s *Succession) Switch(now time.Time) error {
	switch {
	case s.Next == nil:
		return mismatch("next authority", "none", "one that was prepared, and that all who verify know")
	case now.Before(s.SignsAt):
		return mismatch("now", now.UTC().Format(time.RFC3339), "not before "+s.SignsAt.UTC().Format(time.RFC3339)+
			": those who verify have to hear of the next authority first")
	}
	s.Before = append([]*x509.Certificate{s.Signer.cert}, s.Before...)
	s.Signer, s.Next, s.SignsAt, s.RetireAt = s.Next, nil, now, now.Add(s.Overlap)
	return nil
}

// Retire trusts the authorities before no more, once no leaf of theirs can be alive.
func (s *Succession) Retire(now time.Time) error {
	if len(s.Before) > 0 && now.Before(s.RetireAt) {
		return mismatch("now", now.UTC().Format(time.RFC3339), "not before "+s.RetireAt.UTC().Format(time.RFC3339)+
			": leaves of the authority before may live until then")
	}
	s.Before = nil
	return nil
}

// Recover begins again with an authority in the place of those whose key is lost. Nobody vouches for it: it signs only
// when all who verify can have heard of it.
func Recover(lost []*x509.Certificate, fresh *Authority, now time.Time, p Plan) (*Succession, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	lost = lost[:min(len(lost), mostTrusted-1)]
	return &Succession{Signer: fresh, Before: lost, SignsAt: now.Add(p.Settle), RetireAt: now.Add(p.Settle + p.Overlap)},
		nil
}

// Recall trusts authorities that came after the one that signs and whose keys are lost, until what they signed is
// renewed. It reports whether there are any.
func (s *Succession) Recall(later []*x509.Certificate, now time.Time) (changed bool) {
	for _, c := range later {
		if len(s.Trusted()) < mostTrusted && !slices.ContainsFunc(s.Trusted(), c.Equal) {
			s.Before, changed = append(s.Before, c), true
		}
	}
	if changed {
		if s.SignsAt.IsZero() {
			s.SignsAt = now
		}
		s.RetireAt = now.Add(MostOverlap)
	}
	return changed
}

// MaySign tells why nothing is signed yet.
func (s *Succession) MaySign(now time.Time) error {
	if s.Next == nil && now.Before(s.SignsAt) {
		return fmt.Errorf("the authority was replaced after a loss, and signs from %s on: those who verify have to hear "+
			"of it first", s.SignsAt.UTC().Format(time.RFC3339))
	}
	return nil
}

// Names of the files of a Succession.
const (
	signerCert = "tls.crt"
	signerKey  = "tls.key"
	nextCert   = "next.crt"
	nextKey    = "next.key"
	beforeFile = "before.crt"
	timesFile  = "times"
)

// times are those of a Succession, as they are kept.
type times struct {
	SignsAt, RetireAt time.Time
	Overlap           time.Duration
}

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
	}
	if !s.SignsAt.IsZero() {
		files[timesFile], err = json.Marshal(times{s.SignsAt.UTC(), s.RetireAt.UTC(), s.Overlap})
	}
	return files, err
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
	}
	if files[timesFile] != nil {
		var t times
		if json.Unmarshal(files[timesFile], &t) != nil || t.Overlap < 0 {
			return nil, mismatch(timesFile, string(files[timesFile]), "times of a rotation, as they were written")
		}
		s.SignsAt, s.RetireAt, s.Overlap = t.SignsAt, t.RetireAt, t.Overlap
	}
	if (s.Next != nil || s.Before != nil) && s.SignsAt.IsZero() {
		return nil, mismatch(timesFile, "", "times of a rotation: one is under way")
	}
	if len(s.Trusted()) > mostTrusted {
		return nil, mismatch("trusted authorities", len(s.Trusted()), fmt.Sprintf("%d at most", mostTrusted))
	}
	return s, nil
}
