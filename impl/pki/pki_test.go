package pki

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"maps"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

var (
	now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	// whole has all that any identity may need.
	whole = Subject{
		Pool: "harbour", Node: "edge-1", Name: "one", Hosts: []string{"10.0.0.1", "fd00::1", "edge-1.example.com"},
	}
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// wants fails unless an error is a MismatchError of a field; "" wants no error.
func wants(t *testing.T, err error, field string) {
	t.Helper()
	var m *MismatchError
	switch {
	case field == "" && err != nil:
		t.Errorf("want no error, got: %v", err)
	case field != "" && (!errors.As(err, &m) || m.Field != field):
		t.Errorf("want a mismatch of %s, got: %v", field, err)
	case field != "" && (m.Allowed == "" || strings.Contains(m.Error(), "\n") || len(m.Error()) > 1000):
		t.Errorf("want one short line with what is allowed, got: %v", err)
	}
}

func parsed(t *testing.T, text []byte) *x509.CertificateRequest {
	t.Helper()
	r, err := ParseRequest(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEachIdentityIsIssued: for each kind a request by its own rule is signed, and what is signed passes the checks of
// its holder. No other kind takes it for its own, unless it stands in its table twice.
func TestEachIdentityIsIssued(t *testing.T) {
	authority := must(NewPoolAuthority("harbour", now))
	trusted := []*x509.Certificate{authority.Cert()}
	for _, i := range Identities() {
		key := must(NewKey())
		request := parsed(t, must(i.Request(whole, key)))
		certPEM, err := authority.Answer(i, whole, request, now, i.Life.Usual)
		if err != nil {
			t.Errorf("%s: %v", i.Kind, err)
			continue
		}
		pair := &Pair{CertPEM: certPEM, KeyPEM: must(EncodeKey(key))}
		wants(t, i.CheckPair(pair, whole, trusted, now), "")
		wants(t, i.CheckPair(pair, whole, trusted, now.Add(i.Life.Usual-time.Second)), "")
		wants(t, i.CheckPair(pair, whole, trusted, now.Add(i.Life.Usual+time.Second)), "end")
		wants(t, i.CheckPair(pair, whole, trusted, now.Add(-2*time.Hour)), "begin")
		cert := must(ParseCertificates(certPEM))[0]
		if s, ok := i.Read(cert.Subject.CommonName); !ok || s.fill(i.CommonName) != cert.Subject.CommonName {
			t.Errorf("%s: %q is read as %+v", i.Kind, cert.Subject.CommonName, s)
		}
		if k, s, err := Recognize(cert); err != nil || k.Kind != i.Kind || k.CheckCertificate(cert, s) != nil {
			t.Errorf("%s is recognized as %s %+v, %v", i.Kind, k.Kind, s, err)
		}
		for _, other := range Identities() {
			if other.Kind != i.Kind && other.CheckCertificate(cert, whole) == nil {
				t.Errorf("a certificate of %s passes for %s", i.Kind, other.Kind)
			}
		}
	}
}

// TestBadRequests: whatever is asked for beyond the identity is refused, with the field that is wrong.
func TestBadRequests(t *testing.T) {
	type bad struct {
		what   string
		kind   Kind
		change func(*x509.CertificateRequest)
		field  string
	}
	name := func(n string) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) { r.Subject.CommonName = n }
	}
	groups := func(o ...string) func(*x509.CertificateRequest) {
		return func(r *x509.CertificateRequest) { r.Subject.Organization = o }
	}
	for _, c := range []bad{
		{"as it should be", Hub, func(*x509.CertificateRequest) {}, ""},
		{"in another order", Hub, groups("weir:pool:harbour", "openyurt:yurthub"), ""},
		{"an extra organization", Hub, groups("openyurt:yurthub", "weir:pool:harbour", "system:masters"), "organization"},
		{"an organization twice", Hub, groups("openyurt:yurthub", "openyurt:yurthub"), "organization"},
		{"an organization less", Hub, groups("openyurt:yurthub"), "organization"},
		{"another pool", Hub, groups("openyurt:yurthub", "weir:pool:lighthouse"), "organization"},
		{"operator instead of hub", Hub, groups("weir:operators", "weir:pool:harbour"), "organization"},
		{"another node", Hub, name("system:node:edge-2"), "common name"},
		{"capitals", Hub, name("system:node:EDGE-1"), "common name"},
		{"no name", Hub, name(""), "common name"},
		{"an organization where none is", HubAtCloud, groups("system:masters"), "organization"},
		{"another pool in the name", HubAtCloud, name("weir:hub:lighthouse:edge-1"), "common name"},
		{"a country", Hub, func(r *x509.CertificateRequest) { r.Subject.Country = []string{"NL"} }, "subject"},
		{
			"a unit", Hub, func(r *x509.CertificateRequest) { r.Subject.OrganizationalUnit = []string{"system:masters"} },
			"subject",
		},
		{"a second name", Hub, func(r *x509.CertificateRequest) {
			r.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: oidCommonName, Value: "admin"}}
		}, "common name"},
		{"a client with an address", Hub, func(r *x509.CertificateRequest) { r.DNSNames = []string{"edge-1"} }, "addresses"},
		{
			"another's address", Coordinator, func(r *x509.CertificateRequest) {
				r.IPAddresses = append(r.IPAddresses, net.IPv4(10, 0, 0, 9))
			}, "addresses",
		},
		{
			"another's name", Coordinator, func(r *x509.CertificateRequest) { r.DNSNames = []string{"kubernetes.default.svc"} },
			"addresses",
		},
		{"any name", Coordinator, func(r *x509.CertificateRequest) { r.DNSNames = []string{"*.example.com"} }, "addresses"},
		{"no address", Coordinator, func(r *x509.CertificateRequest) { r.DNSNames, r.IPAddresses = nil, nil }, "addresses"},
		{
			"a mail address", Coordinator, func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@example.com"} },
			"alternative names",
		},
		{
			"a URI", Coordinator, func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} },
			"alternative names",
		},
		{"to be an authority", Hub, func(r *x509.CertificateRequest) {
			r.ExtraExtensions = []pkix.Extension{
				{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}},
			}
		}, "extension"},
		{"another replica", Replica, name("weir:coordinator:harbour:two"), "common name"},
		{"a replica of another pool", Replica, name("weir:coordinator:lighthouse:one"), "common name"},
		{"the forwarder of another node", Forwarder, name("weir:forwarder:harbour:edge-2"), "common name"},
		{
			"the forwarder of another pool's group", Forwarder, groups("weir:forwarders", "weir:forwarders:lighthouse"),
			"organization",
		},
	} {
		t.Run(c.what, func(t *testing.T) {
			i := Must(c.kind)
			template := must(i.Template(whole, now, 0))
			r := &x509.CertificateRequest{Subject: template.name()}
			r.IPAddresses, r.DNSNames = template.addresses()
			c.change(r)
			request := must(x509.ParseCertificateRequest(must(x509.CreateCertificateRequest(rand.Reader, r, must(NewKey())))))
			wants(t, i.CheckRequest(request, whole), c.field)
			_, err := must(NewPoolAuthority("harbour", now)).Answer(i, whole, request, now, i.Life.Usual)
			wants(t, err, c.field)
		})
	}
}

// TestKeys: which keys are taken, and only with a proof that whoever asks has them.
func TestKeys(t *testing.T) {
	i := Must(Hub)
	ask := func(key crypto.Signer) *x509.CertificateRequest { return parsed(t, must(i.Request(whole, key))) }
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for field, keys := range map[string][]crypto.Signer{
		"":    {must(NewKey()), must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))},
		"key": {must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)), must(rsa.GenerateKey(rand.Reader, 2048)), edwards},
	} {
		for _, key := range keys {
			wants(t, i.CheckRequest(ask(key), whole), field)
		}
	}
	// Another's public key under a known name: the name and the key are taken from a request that somebody else made.
	theirs, mine := ask(must(NewKey())), ask(must(NewKey()))
	forged := bytes.Replace(mine.Raw, mine.RawSubjectPublicKeyInfo, theirs.RawSubjectPublicKeyInfo, 1)
	wants(t, i.CheckRequest(must(x509.ParseCertificateRequest(forged)), whole), "public key")
}

// TestBadCertificates: a certificate that is not as the table wants it is refused, whoever signed it.
func TestBadCertificates(t *testing.T) {
	authority, i := must(NewPoolAuthority("harbour", now)), Must(Hub)
	for _, c := range []struct {
		what   string
		change func(*x509.Certificate)
		field  string
	}{
		{"as it should be", func(*x509.Certificate) {}, ""},
		{"a life of ten years", func(x *x509.Certificate) { x.NotAfter = now.AddDate(10, 0, 0) }, "life"},
		{
			"a server's", func(x *x509.Certificate) { x.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} },
			"extended key usage",
		},
		{
			"a server's too", func(x *x509.Certificate) { x.ExtKeyUsage = append(x.ExtKeyUsage, x509.ExtKeyUsageServerAuth) },
			"extended key usage",
		},
		{"for anything", func(x *x509.Certificate) { x.ExtKeyUsage = nil }, "extended key usage"},
		{
			"with a usage of its own", func(x *x509.Certificate) { x.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 2, 3}} },
			"extended key usage",
		},
		{"an authority's", func(x *x509.Certificate) { x.IsCA = true }, "basic constraints"},
		{"one that signs", func(x *x509.Certificate) { x.KeyUsage |= x509.KeyUsageCertSign }, "key usage"},
		{"another pool's", func(x *x509.Certificate) { x.Subject.Organization[1] = "weir:pool:lighthouse" }, "organization"},
		{"with an address", func(x *x509.Certificate) { x.DNSNames = []string{"edge-1"} }, "addresses"},
	} {
		t.Run(c.what, func(t *testing.T) {
			cert := must(must(i.Template(whole, now, i.Life.Usual)).certificate())
			c.change(cert)
			key := must(NewKey())
			der := must(x509.CreateCertificate(rand.Reader, cert, authority.cert, key.Public(), authority.key))
			wants(t, i.CheckCertificate(must(x509.ParseCertificate(der)), whole), c.field)
			pair := &Pair{CertPEM: encode(certType, der), KeyPEM: must(EncodeKey(key))}
			wants(t, i.CheckPair(pair, whole, []*x509.Certificate{authority.Cert()}, now), c.field)
		})
	}
}

// TestAnotherIssuer: who vouches counts, and a certificate of another key under the right name is none of the holder's.
func TestAnotherIssuer(t *testing.T) {
	i, ours, other := Must(Hub), must(NewPoolAuthority("harbour", now)), must(NewPoolAuthority("harbour", now))
	template := must(i.Template(whole, now, i.Life.Usual))
	pair, theirs := must(ours.Issue(template)), must(ours.Issue(template))
	trusted := []*x509.Certificate{ours.Cert()}
	wants(t, i.CheckPair(pair, whole, trusted, now), "")
	wants(t, i.CheckPair(pair, whole, []*x509.Certificate{other.Cert()}, now), "issuer")
	wants(t, i.CheckPair(&Pair{CertPEM: theirs.CertPEM, KeyPEM: pair.KeyPEM}, whole, trusted, now), "public key")
	wants(t, i.CheckPair(&Pair{CertPEM: pair.CertPEM[:len(pair.CertPEM)/2], KeyPEM: pair.KeyPEM}, whole, trusted, now),
		"certificates")
	wants(t, i.CheckPair(&Pair{CertPEM: pair.CertPEM, KeyPEM: pair.KeyPEM[:len(pair.KeyPEM)/2]}, whole, trusted, now),
		"key")
}

// TestAuthorities: an authority signs for its own pool only, no other authority, and nothing that outlives it.
func TestAuthorities(t *testing.T) {
	i, authority := Must(Hub), must(NewPoolAuthority("harbour", now))
	wants(t, CheckAuthority(authority.Cert(), "harbour"), "")
	wants(t, CheckAuthority(authority.Cert(), "lighthouse"), "authority")
	request := parsed(t, must(i.Request(whole, must(NewKey()))))
	_, err := must(NewPoolAuthority("lighthouse", now)).Answer(i, whole, request, now, i.Life.Usual)
	wants(t, err, "authority")
	for _, life := range []time.Duration{0, time.Minute, 10 * 365 * day, -time.Hour} {
		_, err = authority.Answer(i, whole, request, now, life)
		wants(t, err, "life")
	}
	soon := authority.Cert().NotAfter.Add(-time.Hour)
	cert := must(ParseCertificates(must(authority.Answer(i, whole, request, soon, i.Life.Usual))))[0]
	if !cert.NotAfter.Equal(authority.Cert().NotAfter) {
		t.Errorf("a leaf ends at %s, its authority at %s", cert.NotAfter, authority.Cert().NotAfter)
	}
	if _, err = authority.Answer(i, whole, request, authority.Cert().NotAfter.Add(-time.Minute), i.Life.Usual); !errors.Is(
		err, errEnded) {
		t.Errorf("an authority that ends: %v", err)
	}
	// Path length 0: what it signed for another authority is ignored.
	below := must(NewPoolAuthority("harbour", now))
	template := *below.cert
	template.MaxPathLen, template.MaxPathLenZero = 0, false
	der := must(x509.CreateCertificate(rand.Reader, &template, authority.cert, below.cert.PublicKey, authority.key))
	below.cert = must(x509.ParseCertificate(der))
	leaf := must(ParseCertificates(must(below.Sign(must(i.Template(whole, now, day)), must(NewKey()).Public()))))[0]
	wants(t, i.Verify([]*x509.Certificate{leaf, below.cert}, []*x509.Certificate{authority.Cert()}, now), "issuer")
	long := must(NewAuthority("weir:pool:harbour", now, day))
	long.cert.MaxPathLenZero, long.cert.MaxPathLen = false, -1
	wants(t, CheckAuthority(long.cert, "harbour"), "path length")
	wants(t, CheckAuthority(leaf, "harbour"), "authority")
}

// TestBelowAnother: an authority of a pool may be signed by another one, which then is not trusted itself.
func TestBelowAnother(t *testing.T) {
	i, root := Must(Hub), must(NewAuthority("corporation", now, AuthorityLife))
	_, err := root.PoolAuthority("harbour", now)
	wants(t, err, "path length")
	root.cert.MaxPathLenZero, root.cert.MaxPathLen = false, -1
	_, err = root.PoolAuthority("a:b", now)
	wants(t, err, "pool")
	_, err = root.PoolAuthority("harbour", root.cert.NotAfter.Add(-day))
	wants(t, err, "end")
	pool := must(root.PoolAuthority("harbour", now))
	wants(t, CheckAuthority(pool.Cert(), "harbour"), "")
	wants(t, i.CheckPair(must(pool.Grant(i, whole, now, day)), whole, []*x509.Certificate{pool.Cert()}, now), "")
	wants(t, i.CheckPair(must(pool.Grant(i, whole, now, day)), whole, []*x509.Certificate{root.Cert()}, now), "issuer")
}

// TestKubeletOfAYear: a certificate as kube-controller-manager makes it for a kubelet is good, and no reason to tell an
// operator of anything.
func TestKubeletOfAYear(t *testing.T) {
	i := Must(Kubelet)
	pair := must(must(NewPoolAuthority("harbour", now)).Issue(must(i.Template(whole, now, 365*day))))
	wants(t, i.CheckCertificate(must(ParseCertificates(pair.CertPEM))[0], whole), "")
}

// TestSubjects: names that could be read as something else are refused.
func TestSubjects(t *testing.T) {
	for _, c := range []struct {
		kind   Kind
		change func(*Subject)
		field  string
	}{
		{Hub, func(s *Subject) { s.Pool = "" }, "pool"},
		{Hub, func(s *Subject) { s.Pool = "a:b" }, "pool"},
		{Hub, func(s *Subject) { s.Pool = "Harbour" }, "pool"},
		{Hub, func(s *Subject) { s.Pool = strings.Repeat("a", 64) }, "pool"},
		{Hub, func(s *Subject) { s.Node = "" }, "node"},
		{Hub, func(s *Subject) { s.Node = "a b" }, "node"},
		{HubAtCloud, func(s *Subject) { s.Node = "a:b" }, "node"},
		{HubAtCloud, func(s *Subject) { s.Node = strings.Repeat("a", 254) }, "node"},
		{Viewer, func(s *Subject) { s.Name = "system:admin" }, "name"},
		{Replica, func(s *Subject) { s.Name = "" }, "name"},
		{Viewer, func(s *Subject) { s.Node, s.Hosts = "", nil }, ""},
		{Viewer, func(s *Subject) { s.Name = "ann@example.com" }, ""},
		{Coordinator, func(s *Subject) { s.Hosts = nil }, "addresses"},
		{Coordinator, func(s *Subject) { s.Hosts = []string{"*.example.com"} }, "addresses"},
		{Coordinator, func(s *Subject) { s.Hosts = make([]string, 33) }, "addresses"},
	} {
		s := whole
		c.change(&s)
		_, err := Must(c.kind).Template(s, now, day)
		wants(t, err, c.field)
	}
	_, err := NewPoolAuthority("a:b", now)
	wants(t, err, "pool")
	_, err = Of("admin")
	wants(t, err, "kind")
}

// TestRead: a name of one kind is not taken for another's.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		kind Kind
		name string
		want Subject
		ok   bool
	}{
		{HubAtCloud, "weir:hub:p:n", Subject{Pool: "p", Node: "n"}, true},
		{HubAtCloud, "weir:hub:p:", Subject{}, false},
		{HubAtCloud, "weir:hub:p:n:x", Subject{}, false},
		{HubAtCloud, "weir:forwarder:p:n", Subject{}, false},
		{Forwarder, "weir:forwarder:p", Subject{}, false},
		{Forwarder, "weir:forwarder:p:n", Subject{Pool: "p", Node: "n"}, true},
		{Hub, "system:node:n", Subject{Node: "n"}, true},
		{Hub, "system:node:", Subject{}, false},
	} {
		if got, ok := Must(c.kind).Read(c.name); ok != c.ok || ok && (got.Pool != c.want.Pool || got.Node != c.want.Node) {
			t.Errorf("%s: %q is read as %+v, %v", c.kind, c.name, got, ok)
		}
	}
}

// TestParse: half a file, too much of it, or another one is refused.
func TestParse(t *testing.T) {
	authority := must(NewPoolAuthority("harbour", now))
	request := must(Must(Hub).Request(whole, must(NewKey())))
	for what, text := range map[string][]byte{
		"nothing": nil, "half": request[:len(request)/2], "two": append(bytes.Clone(request), request...),
		"a certificate":    authority.CertPEM(),
		"more than may be": append(bytes.Clone(request), bytes.Repeat([]byte("\n"), MaxRequest)...),
		"rubbish":          []byte("rubbish"),
	} {
		if _, err := ParseRequest(text); err == nil {
			t.Errorf("request: %s was taken", what)
		} else {
			wants(t, err, "request")
		}
	}
	for what, text := range map[string][]byte{
		"nothing": nil, "half": authority.CertPEM()[:200], "a request": request,
		"with rubbish": append(authority.CertPEM(), "x"...),
		"too many":     bytes.Repeat(authority.CertPEM(), maxCerts+1), "too long": bytes.Repeat([]byte(" "), MaxPEM+1),
	} {
		if _, err := ParseCertificates(text); err == nil {
			t.Errorf("certificates: %s was taken", what)
		} else {
			wants(t, err, "certificates")
		}
	}
	key := must(authority.KeyPEM())
	if _, err := LoadAuthority(authority.CertPEM(), key); err != nil {
		t.Error(err)
	}
	if _, err := LoadAuthority(authority.CertPEM(), must(must(NewPoolAuthority("harbour", now)).KeyPEM())); err == nil {
		t.Error("an authority with another's key was taken")
	}
	leaf := must(authority.Issue(must(Must(Hub).Template(whole, now, day))))
	if _, err := LoadAuthority(leaf.CertPEM, leaf.KeyPEM); err == nil {
		t.Error("a leaf was taken for an authority")
	}
}

// TestSuccession: through a rotation each leaf is trusted as long as it lives, and the old authority no longer.
func TestSuccession(t *testing.T) {
	i := Must(Hub)
	leafOf := func(a *Authority, at time.Time) []*x509.Certificate {
		return must(ParseCertificates(must(a.Issue(must(i.Template(whole, at, i.Life.Usual)))).CertPEM))
	}
	s := &Succession{Signer: must(NewPoolAuthority("harbour", now))}
	// kept is what a restart of the manager makes of it.
	kept := func() *Succession { return must(LoadSuccession(must(s.Files()))) }
	first := leafOf(s.Signer, now)
	plan := Plan{Settle: time.Minute, Overlap: 2 * longest}
	wants(t, s.Switch(now), "next authority")
	wants(t, s.Prepare(must(NewPoolAuthority("lighthouse", now)), now, plan), "next authority")
	wants(t, s.Prepare(must(NewPoolAuthority("harbour", now)), now, Plan{time.Second, day}), "settle")
	wants(t, s.Prepare(must(NewPoolAuthority("harbour", now)), now, Plan{time.Minute, MostOverlap + 1}), "overlap")
	wants(t, s.Prepare(must(NewPoolAuthority("harbour", now)), now.Add(-time.Minute), plan), "")
	wants(t, s.Prepare(must(NewPoolAuthority("harbour", now)), now, plan), "next authority")
	wants(t, s.Switch(now.Add(-time.Second)), "now")
	before := kept().Trusted()
	if s = kept(); len(before) != 2 {
		t.Fatalf("%d are trusted", len(before))
	}
	wants(t, s.Switch(now), "")
	s = kept()
	second := leafOf(s.Signer, now)
	for _, leaf := range [][]*x509.Certificate{first, second} {
		wants(t, i.Verify(leaf, s.Trusted(), now), "")
		wants(t, i.Verify(leaf, before, now), "") // who has not heard of the switch
		wants(t, i.Verify(leaf, must(ParseCertificates(s.TrustPEM())), now), "")
	}
	wants(t, s.Retire(now.Add(2*longest-time.Second)), "now")
	wants(t, i.Verify(first, s.Trusted(), now), "")
	wants(t, s.Retire(now.Add(2*longest)), "")
	s = kept()
	wants(t, i.Verify(first, s.Trusted(), now), "issuer")
	wants(t, i.Verify(second, s.Trusted(), now), "")

	at := now
	for range 2 * mostTrusted { // a CA rotated again and again: the number of the trusted is bounded
		if err := s.Prepare(must(NewPoolAuthority("harbour", now)), at, plan); err != nil {
			wants(t, err, "trusted authorities")
			break
		}
		wants(t, s.MaySign(at), "")
		at = at.Add(plan.Settle)
		wants(t, s.Switch(at), "")
	}
	if n := len(kept().Trusted()); n > mostTrusted {
		t.Errorf("%d authorities are trusted", n)
	}
	files := must(s.Files())
	for what, text := range map[string][]byte{
		beforeFile: bytes.Repeat(s.Signer.pem, mostTrusted), timesFile: []byte("{"), nextCert: s.Signer.pem[:40],
		signerKey: must(must(NewPoolAuthority("harbour", now)).KeyPEM()),
	} {
		broken := maps.Clone(files)
		if broken[what] = text; what == nextCert {
			broken[nextKey] = files[signerKey]
		}
		if _, err := LoadSuccession(broken); err == nil {
			t.Errorf("a bad %s is loaded", what)
		}
	}
	delete(files, timesFile)
	_, err := LoadSuccession(files)
	wants(t, err, "times")
}

// TestRecover: an authority in the place of a lost one counts beside it, and signs only when all can have heard of it.
func TestRecover(t *testing.T) {
	lost := must(NewPoolAuthority("harbour", now))
	plan := Plan{Settle: time.Minute, Overlap: time.Hour}
	s := must(Recover([]*x509.Certificate{lost.cert, lost.cert, lost.cert, lost.cert},
		must(NewPoolAuthority("harbour", now)), now, plan))
	s = must(LoadSuccession(must(s.Files())))
	if len(s.Trusted()) != mostTrusted || s.MaySign(now) == nil || s.MaySign(now.Add(time.Minute)) != nil {
		t.Errorf("%d are trusted, it may sign: %v", len(s.Trusted()), s.MaySign(now))
	}
	wants(t, s.Prepare(must(NewPoolAuthority("harbour", now)), now, plan), "next authority")
	wants(t, s.Retire(now.Add(time.Hour)), "now")
	wants(t, s.Retire(now.Add(time.Hour+time.Minute)), "")
	_, err := Recover(nil, lost, now, Plan{})
	wants(t, err, "settle")
}

// TestRenewal: a certificate is due between 70 and 80 % of its life, at a time that does not move, and which differs
// between holders.
func TestRenewal(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(now)
	authority, i := must(NewPoolAuthority("harbour", now)), Must(Hub)
	seen := map[time.Time]bool{}
	for seed := range uint64(50) {
		cert := must(ParseCertificates(must(authority.Issue(must(i.Template(whole, now, i.Life.Usual)))).CertPEM))[0]
		r := Renewal{Clock: c, Seed: seed}
		at, life := r.At(cert), cert.NotAfter.Sub(cert.NotBefore)
		if part := float64(at.Sub(cert.NotBefore)) / float64(life); part < 0.7 || part > 0.8 {
			t.Errorf("due at %.3f of its life", part)
		}
		if !r.At(cert).Equal(at) || (Renewal{Clock: c, Seed: seed + 1}).At(cert).Equal(at) {
			t.Error("the time is not the holder's own")
		}
		seen[at] = true
		c.SetTime(at.Add(-time.Second))
		early := r.Due(cert)
		c.SetTime(at)
		if early || !r.Due(cert) {
			t.Errorf("a second before it is due: %v, then: %v", early, r.Due(cert))
		}
	}
	if len(seen) < 45 {
		t.Errorf("50 certificates are due at %d times", len(seen))
	}
	// The shortest life is not due as soon as it begins.
	short := must(ParseCertificates(must(authority.Issue(must(i.Template(whole, now, i.Life.Least)))).CertPEM))[0]
	if at := (Renewal{Clock: c}).At(short); at.Before(now.Add(i.Life.Least / 2)) {
		t.Errorf("a certificate of %s is due %s after it was signed", i.Life.Least, at.Sub(now))
	}
}
