package pki

import (
	"bytes"
	"testing"
)

// FuzzRequest: whatever somebody sends, it is refused, or it is what the table says for this subject.
func FuzzRequest(f *testing.F) {
	for _, i := range Identities() {
		f.Add(must(i.Request(whole, must(NewKey()))))
	}
	authority := must(NewPoolAuthority("harbour", now))
	f.Add(authority.CertPEM())
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseRequest(text)
		if err != nil {
			wants(t, err, "request")
			return
		}
		for _, i := range Identities() {
			certPEM, err := authority.Answer(i, whole, r, now, i.Life.Least)
			if err != nil {
				continue
			}
			cert := must(ParseCertificates(certPEM))[0]
			if err := i.CheckCertificate(cert, whole); err != nil || !sameKey(cert.PublicKey, r.PublicKey) {
				t.Errorf("%s: %v", i.Kind, err)
			}
		}
	})
}

// FuzzCertificates: a file of certificates is refused, or read whole.
func FuzzCertificates(f *testing.F) {
	authority := must(NewPoolAuthority("harbour", now))
	leaf := must(authority.Issue(must(Must(Replica).Template(whole, now, day))))
	f.Add(leaf.CertPEM)
	f.Add(append(bytes.Clone(leaf.CertPEM), authority.CertPEM()...))
	f.Add(leaf.KeyPEM)
	f.Fuzz(func(t *testing.T, text []byte) {
		certs, err := ParseCertificates(text)
		if err != nil {
			wants(t, err, "certificates")
		} else if again, err := ParseCertificates(EncodeCertificates(certs)); err != nil || len(again) != len(certs) {
			t.Errorf("%d certificates are read as %d: %v", len(certs), len(again), err)
		}
		for _, c := range certs {
			if i, s, err := Recognize(c); err == nil && i.CheckCertificate(c, s) != nil {
				t.Errorf("recognized as %s %+v", i.Kind, s)
			}
		}
		if _, err := ParseKey(text); err != nil {
			wants(t, err, "key")
		}
	})
}
