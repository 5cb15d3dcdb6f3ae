package moved

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/weir-edge/weir/impl/pki"
)

// TestSigned: a statement counts that the hub of its node has signed for its pool, and no other does.
func TestSigned(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	authority, err := pki.NewPoolAuthority("harbour", now)
	if err != nil {
		t.Fatal(err)
	}
	other, err := pki.NewPoolAuthority("harbour", now)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(by *pki.Authority, kind pki.Kind, of pki.Subject, node, pool string) Signed {
		t.Helper()
		template, err := pki.Must(kind).Template(of, now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := by.Issue(template)
		if err != nil {
			t.Fatal(err)
		}
		key, err := pki.ParseKey(pair.KeyPEM)
		if err != nil {
			t.Fatal(err)
		}
		var chain [][]byte
		for rest := pair.CertPEM; ; {
			var b *pem.Block
			if b, rest = pem.Decode(rest); b == nil {
				break
			}
			chain = append(chain, b.Bytes)
		}
		st, _ := NewStatement(node, 1, 2, []Correction{correction(t, "p=10.0.0.9")})
		s, err := st.Sign(pool, chain, func(what string, text []byte) ([]byte, error) { return pki.VouchAs(key, what, text) })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	verify := func(chain []*x509.Certificate) error {
		return pki.Must(pki.Hub).Verify(chain, []*x509.Certificate{authority.Cert()}, now)
	}
	of := pki.Subject{Pool: "harbour", Node: "a"}
	server := pki.Subject{Pool: "harbour", Hosts: []string{"10.0.0.1"}}
	leads := of
	leads.Leads = true
	good := signed(authority, pki.Hub, of, "a", "harbour")
	changed := func(f func(s *Signed)) Signed {
		s := good
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		s    Signed
		pool string
		want string
	}{
		"its own":           {good, "harbour", ""},
		"a leader's own":    {signed(authority, pki.Hub, leads, "a", "harbour"), "harbour", ""},
		"of another node":   {signed(authority, pki.Hub, of, "b", "harbour"), "harbour", "chain"},
		"for another pool":  {signed(authority, pki.Hub, of, "a", "lighthouse"), "harbour", "signature"},
		"in another pool":   {good, "lighthouse", "chain"},
		"another authority": {signed(other, pki.Hub, of, "a", "harbour"), "harbour", "chain"},
		"a coordinator's":   {signed(authority, pki.Coordinator, server, "a", "harbour"), "harbour", "chain"},
		"changed": {
			changed(func(s *Signed) { s.Text = strings.Replace(s.Text, "10.0.0.9", "10.0.0.8", 1) }), "harbour", "signature",
		},
		"no signature": {changed(func(s *Signed) { s.Signature = nil }), "harbour", "signature"},
		"a long signature": {
			changed(func(s *Signed) { s.Signature = make([]byte, maxSignature+1) }), "harbour", "signature",
		},
		"no chain":     {changed(func(s *Signed) { s.Chain = nil }), "harbour", "chain"},
		"a long chain": {changed(func(s *Signed) { s.Chain = make([][]byte, maxChain+1) }), "harbour", "chain"},
		"a long certificate": {
			changed(func(s *Signed) { s.Chain = [][]byte{make([]byte, maxCertificate+1)} }), "harbour", "chain",
		},
		"no certificate": {changed(func(s *Signed) { s.Chain = [][]byte{{1}} }), "harbour", "chain"},
		"no statement":   {changed(func(s *Signed) { s.Text = "a" }), "harbour", "fields"},
	} {
		st, err := c.s.Open(c.pool, verify)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want+":") {
			t.Errorf("%s: %v, want %s named", name, err, c.want)
		}
		if err == nil && st.String() != "a 1 2 p=10.0.0.9" {
			t.Errorf("%s: %s", name, st)
		}
	}
}
